import { randomUUID } from 'node:crypto'

import type pg from 'pg'

type Row = Readonly<Record<string, unknown>>

const OWNER = { tenant_id: 'acme', project_id: 'web' }
const NOW = '2026-11-15T12:00:00Z'
const SCOPE = 'http:dispatch:example.com'

/** Inserts a grant that never expires, with the changes of a test. Returns its id. */
export async function insertGrant(pool: pg.Pool, changes: Row = {}): Promise<string> {
  const id = randomUUID()
  await insert(pool, 'execution_grants', {
    id,
    ...OWNER,
    subject: 'ada',
    scopes: [SCOPE],
    created_by_subject: 'ada',
    created_at: NOW,
    ...changes,
  })
  return id
}

/** Inserts an active schedule that is due tomorrow, with its own grant and the changes of a test. Returns its id. */
export async function insertSchedule(pool: pg.Pool, changes: Row = {}): Promise<string> {
  const id = randomUUID()
  const grantId = await insertGrant(pool, { schedule_id: id })
  await insert(pool, 'schedules', {
    id,
    ...OWNER,
    grant_id: grantId,
    owner_subject: 'ada',
    target_kind: 'http',
    state: 'active',
    revision: 1,
    next_slot_at: '2026-11-16T09:00:00Z',
    due_at: '2026-11-16T09:00:00Z',
    auto_pause_threshold: 10,
    created_by_subject: 'ada',
    created_at: NOW,
    ...changes,
  })
  return id
}

/** Inserts the first revision of a schedule, by default without a cadence and with a new grant. */
export async function insertRevision(pool: pg.Pool, changes: Row): Promise<void> {
  await insert(pool, 'schedule_revisions', {
    ...OWNER,
    revision: 1,
    grant_id: changes['grant_id'] ?? (await insertGrant(pool)),
    required_scope: SCOPE,
    name: 'Digest',
    target_kind: 'http',
    target: '{}',
    policy: '{}',
    changed_by_subject: 'ada',
    changed_at: NOW,
    ...changes,
  })
}

/** Inserts a run, by default one that waits for a worker. */
export async function insertRun(pool: pg.Pool, changes: Row): Promise<void> {
  const { state = 'pending' } = changes
  await insert(pool, 'runs', {
    ...OWNER,
    id: randomUUID(),
    revision: 1,
    trigger: 'schedule',
    state,
    begun_at: NOW,
    ...(state === 'pending' ? { waits_for: 'worker', due_at: NOW, lane: 'http.0' } : {}),
    ...(state === 'skipped' ? { completed_at: NOW } : {}),
    ...changes,
  })
}

async function insert(pool: pg.Pool, table: string, row: Row): Promise<void> {
  const columns = Object.keys(row)
  const placeholders = columns.map((_, index) => `$${index + 1}`)
  await pool.query(
    `insert into carillon.${table} (${columns.join(', ')}) values (${placeholders.join(', ')})`,
    Object.values(row),
  )
}
