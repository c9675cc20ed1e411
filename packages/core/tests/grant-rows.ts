import { randomUUID } from 'node:crypto'

import { CALLER, type Pipeline } from './pipeline.ts'
import { sql } from './sql.ts'

/** Inserts a grant of any project. */
export async function insertGrant(
  { db }: Pipeline,
  options: { tenantId?: string; projectId?: string; expiresAt?: string } = {},
): Promise<string> {
  const id = randomUUID()
  await sql`
    insert into carillon.execution_grants (
      id, tenant_id, project_id, subject, scopes, expires_at, created_by_subject, created_at
    )
    values (
      ${id}, ${options.tenantId ?? CALLER.tenantId}, ${options.projectId ?? CALLER.projectId}, 'user:alice',
      '{test:dispatch:*}', ${options.expiresAt ?? null}, 'user:alice', '2026-01-01'
    )`.execute(db)
  return id
}

export async function revokeGrant({ db, clock }: Pipeline, id: string): Promise<void> {
  await sql`update carillon.execution_grants set revoked_at = ${clock.databaseNow()} where id = ${id}`.execute(db)
}
