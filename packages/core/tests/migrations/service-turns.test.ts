import { expect, test } from 'vitest'

import { migrate, migrateDown } from '../../src/db/migrate.ts'
import { createDatabase, type TestDatabase } from '../database.ts'

const BEFORE = 6
const AFTER = 7
const AUDIT = '01995c0e-0000-7000-8000-00000000000a'
const SCHEDULE = '01995c0e-0000-7000-8000-00000000000b'

async function insertOldAudit({ pool }: TestDatabase): Promise<void> {
  await pool.query(`
    insert into carillon.audits (id, audited_from, audited_to, started_at, completed_at, schedule_count, slot_count,
        unreadable_count, truncated_count, finding_count, repaired_count)
      values ('${AUDIT}', '2026-03-01', '2026-03-02', '2026-03-02', '2026-03-02 00:01Z', 1, 1, 0, 0, 3, 0);
    insert into carillon.audit_findings (audit_id, ordinal, kind, tenant_id, project_id, schedule_id, detail, is_repaired)
      values ('${AUDIT}', 1, 'slot_lost', 'acme', 'web', '${SCHEDULE}', 'one', true),
        ('${AUDIT}', 2, 'run_without_job', 'acme', 'web', '${SCHEDULE}', 'two', true),
        ('${AUDIT}', 3, 'job_without_run', null, null, null, 'three', false)`)
}

test('findings keep their kind, except that run_without_job becomes run_stuck and job_without_run is removed', async () => {
  await using database = await createDatabase({ content: 'empty' })
  const { pool } = database
  await migrate(pool, { to: BEFORE })
  await insertOldAudit(database)

  await migrate(pool, { to: AFTER })

  const { rows } = await pool.query('select ordinal, kind, found_at from carillon.audit_findings order by ordinal')
  const foundAt = new Date('2026-03-02T00:01:00Z')
  expect(rows).toEqual([
    { ordinal: 1, kind: 'slot_lost', found_at: foundAt },
    { ordinal: 2, kind: 'run_stuck', found_at: foundAt },
  ])
  expect((await pool.query('select is_whole from carillon.audits')).rows).toEqual([{ is_whole: true }])
})

test('the audit does not apply its rules to lines from before the migration, and an empty ledger needs no such mark', async () => {
  const turnsAfter = async (withRuns: boolean): Promise<unknown[]> => {
    await using database = await createDatabase({ content: 'empty' })
    const { pool } = database
    await migrate(pool, { to: BEFORE })
    if (withRuns) {
      await pool.query(`
        insert into carillon.runs (schedule_id, scheduled_for, id, tenant_id, project_id, revision, trigger, state, reason, begun_at,
          completed_at)
        values ('${SCHEDULE}', date_trunc('milliseconds', now()), '${AUDIT}', 'acme', 'web', 1, 'schedule', 'skipped', 'missed', now(), now())`)
    }
    await migrate(pool, { to: AFTER })
    const { rows } = await pool.query<object>(`
      select name, (cursor ->> 'legacyUntil')::bigint > extract(epoch from now() - interval '1 hour') * 1000 as is_marked
      from carillon.service_turns`)
    return rows
  }

  expect(await turnsAfter(true)).toEqual([{ name: 'audit', is_marked: true }])
  expect(await turnsAfter(false)).toEqual([])
})

test('migrating down removes findings of kinds that the earlier version does not know', async () => {
  await using database = await createDatabase({ content: 'empty' })
  const { pool } = database
  await migrate(pool, { to: BEFORE })
  await insertOldAudit(database)
  await migrate(pool, { to: AFTER })
  await pool.query(`
    insert into carillon.audit_findings (audit_id, ordinal, kind, detail, is_repaired, found_at)
    values ('${AUDIT}', 4, 'count_wrong', 'four', true, now())`)

  await migrateDown(pool, { to: BEFORE })

  const { rows } = await pool.query('select ordinal, kind from carillon.audit_findings order by ordinal')
  expect(rows).toEqual([
    { ordinal: 1, kind: 'slot_lost' },
    { ordinal: 2, kind: 'run_without_job' },
  ])
})
