import { columns, text, type RowFrom } from '../../db/columns.ts'
import type { Db, Tx } from '../../db/database.ts'
import { sql } from '../../db/sql.ts'

/** A finding of a check of a module. */
export interface FoundByModule {
  /** Null if it belongs to no project. */
  readonly tenantId: string | null
  readonly projectId: string | null
  /** What was found and what to do. With the project it names the fault: there is no schedule and no slot. */
  readonly detail: string
}

const SEEN_COLUMNS = columns('findings', { tenantId: text.orNull, projectId: text.orNull, detail: text })

/** Those of the given findings that are stored since the last full audit began. Needs the worker's role. */
export async function listSeenModuleFindings(
  db: Db,
  p: { details: readonly string[] },
): Promise<RowFrom<typeof SEEN_COLUMNS>[]> {
  return sql`
    select ${SEEN_COLUMNS}
    from audit_findings as findings
    join audits on audits.id = findings.audit_id
    where findings.kind = 'module_check' and findings.detail = any(${p.details}::text[])
      and audits.completed_at >= coalesce(
        (select whole.started_at from audits as whole where whole.is_whole order by whole.id desc limit 1), '-infinity'
      )`.execute(db)
}

/** Writes findings. One that is already there moves to this audit and keeps the instant at which it was found first. */
export async function insertModuleFindings(
  tx: Tx,
  p: { auditId: string; findings: readonly FoundByModule[]; now: Date },
): Promise<void> {
  await sql`
    with found as materialized (
      select *
      from unnest(
        ${p.findings.map(({ tenantId }) => tenantId)}::text[],
        ${p.findings.map(({ projectId }) => projectId)}::text[],
        ${p.findings.map(({ detail }) => detail)}::text[]
      ) with ordinality as finding(tenant_id, project_id, detail, ordinal)
    ), before as (
      delete from audit_findings as before
      using found
      where before.kind = 'module_check' and before.detail = found.detail
        and before.tenant_id is not distinct from found.tenant_id and before.project_id is not distinct from found.project_id
      returning found.ordinal, before.found_at
    )
    insert into audit_findings (audit_id, ordinal, kind, tenant_id, project_id, detail, is_repaired, found_at)
    select ${p.auditId}, found.ordinal, 'module_check', found.tenant_id, found.project_id, found.detail, false,
      coalesce((select min(before.found_at) from before where before.ordinal = found.ordinal), ${p.now}::timestamptz)
    from found`.execute(tx)
}
