import { v7 } from 'uuid'

/**
 * A UUIDv7 of an instant that Postgres named, so that ids sort by the database's clock and index pages fill in order,
 * whatever a worker's own clock says.
 */
export function identifierAt(at: number): string {
  return v7({ msecs: at })
}
