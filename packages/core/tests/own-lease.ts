import { randomUUID } from 'node:crypto'

import type { Lease } from '../src/kernel/lease.ts'

/** The lease of a worker of its own, for a service that a test runs outside of a worker. It never runs out. */
export function ownLease(): Pick<Lease, 'workerId'> {
  return { workerId: randomUUID() }
}
