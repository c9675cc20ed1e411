import { sql } from 'kysely'

import type { Caller } from '../caller.ts'
import type { GrantFacts } from '../policy/grant.ts'
import type { Db, Tx } from './database.ts'

/** What counts of a grant when a run is asked for; undefined also if it is another project's (I9). */
export async function findGrant(
  db: Db | Tx,
  p: Pick<Caller, 'tenantId' | 'projectId'> & { id: string },
): Promise<GrantFacts | undefined> {
  const { rows } = await sql<{ scopes: string[]; expires_at: Date | null; revoked_at: Date | null }>`
    select grants.scopes, grants.expires_at, grants.revoked_at
    from carillon.execution_grants as grants
    where grants.id = ${p.id} and grants.tenant_id = ${p.tenantId} and grants.project_id = ${p.projectId}`.execute(db)
  const [row] = rows
  return (
    row && {
      scopes: row.scopes,
      expiresAt: row.expires_at?.getTime() ?? null,
      revokedAt: row.revoked_at?.getTime() ?? null,
    }
  )
}
