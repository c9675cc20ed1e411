import { expect, test } from 'vitest'

import { migrate, migrateDown } from '../../src/db/migrate.ts'
import { createPool } from '../../src/db/pool.ts'
import { createDatabase, type TestDatabase } from '../database.ts'

const HTTP = '01995c0e-0000-7000-8000-00000000000a'
const OTHER = '01995c0e-0000-7000-8000-00000000000b'
const DELETED = '01995c0e-0000-7000-8000-00000000000c'
const GIVEN = '01995c0e-0000-7000-8000-00000000000d'
const GRANT = '01995c0e-0000-7000-8000-0000000000f0'

/** Inserts schedules as an older version left them, when not every schedule had a grant. */
async function fillOld({ pool }: TestDatabase): Promise<void> {
  await pool.query(`
    insert into carillon.execution_grants (id, tenant_id, project_id, subject, scopes, created_by_subject, created_at)
    values ('${GRANT}', 'acme', 'web', 'user:alice', '{http:dispatch:*}', 'user:alice', now());
    insert into carillon.schedules (
      id, tenant_id, project_id, owner_subject, target_kind, state, revision, grant_id, next_slot_at, due_at,
      auto_pause_threshold, created_by_subject, created_at, deleted_at, deleted_by_subject
    )
    values
      ('${HTTP}', 'acme', 'web', 'user:alice', 'http', 'active', 2, null, '2099-01-01', '2099-01-01', 10, 'user:alice', now(), null, null),
      ('${OTHER}', 'acme', 'web', 'user:bob', 'graph', 'completed', 1, null, null, null, 10, 'user:bob', now(), null, null),
      ('${DELETED}', 'acme', 'web', 'user:bob', 'http', 'deleted', 1, null, null, null, 10, 'user:bob', now(), '2026-01-02', 'user:root'),
      ('${GIVEN}', 'acme', 'web', 'user:bob', 'http', 'completed', 1, '${GRANT}', null, null, 10, 'user:bob', now(), null, null);
    insert into carillon.schedule_revisions (
      schedule_id, revision, tenant_id, project_id, name, cadence_kind, cadence_once, target_kind, target, policy, grant_id,
      changed_by_subject, changed_at
    )
    values
      ('${HTTP}', 1, 'acme', 'web', 'n', 'once', '{}', 'http', '{"url":"https://old.example.com/run?x=1"}', '{}', null, 'user:alice', now()),
      ('${HTTP}', 2, 'acme', 'web', 'n', 'once', '{}', 'http', '{"url":"http://localhost:3000/run"}', '{}', null, 'user:alice', now()),
      ('${OTHER}', 1, 'acme', 'web', 'n', 'once', '{}', 'graph', '{}', '{}', null, 'user:bob', now()),
      ('${DELETED}', 1, 'acme', 'web', 'n', 'once', '{}', 'http', '{"url":"http://[::1]/"}', '{}', null, 'user:bob', now()),
      ('${GIVEN}', 1, 'acme', 'web', 'n', 'once', '{}', 'http', '{"url":"http://a.example.com.:8080/"}', '{}', '${GRANT}', 'user:bob', now())`)
}

test('old schedules without a grant get one with exactly the scopes of their revisions, and others keep theirs', async () => {
  await using database = await createDatabase({ content: 'empty' })
  await migrate(database.pool, { to: 2 })
  await fillOld(database)

  await migrate(database.pool)

  const { rows } = await database.pool.query(`
    select schedules.id, grants.id = schedules.id as is_own, grants.scopes, grants.subject, grants.revoked_by_subject as ended_by
    from carillon.schedules join carillon.execution_grants as grants on grants.id = schedules.grant_id
    order by schedules.id`)
  expect(rows).toEqual([
    {
      id: HTTP,
      is_own: true,
      scopes: ['http:dispatch:localhost:3000', 'http:dispatch:old.example.com'],
      subject: 'user:alice',
      ended_by: null,
    },
    { id: OTHER, is_own: true, scopes: ['graph:execute:*'], subject: 'user:bob', ended_by: null },
    { id: DELETED, is_own: true, scopes: ['http:dispatch:[::1]'], subject: 'user:bob', ended_by: 'user:root' },
    { id: GIVEN, is_own: false, scopes: ['http:dispatch:*'], subject: 'user:alice', ended_by: null },
  ])
  const { rows: scopes } = await database.pool.query(
    `select required_scope from carillon.schedule_revisions order by schedule_id, revision`,
  )
  expect(scopes.map(({ required_scope }) => required_scope as string)).toEqual([
    'http:dispatch:old.example.com',
    'http:dispatch:localhost:3000',
    'graph:execute:*',
    'http:dispatch:[::1]',
    'http:dispatch:a.example.com:8080',
  ])
})

test('an old idempotent answer keeps its subject and gets the grant of its schedule', async () => {
  await using database = await createDatabase({ content: 'empty' })
  await migrate(database.pool, { to: 2 })
  await fillOld(database)
  await database.pool.query(`
    insert into carillon.idempotent_answers (tenant_id, project_id, key, request_hash, schedule_id, answer, answered_at)
    values ('acme', 'web', 'k', decode(repeat('ab', 32), 'hex'), '${HTTP}',
      '{"id":"${HTTP}","target":{"b":1,"a":2},"grantId":null,"createdBy":"user:alice"}', now())`)

  await migrate(database.pool)

  const { rows } = await database.pool.query<{ subject: string; answer: object }>(
    `select subject, answer from carillon.idempotent_answers`,
  )
  expect(rows).toEqual([
    {
      subject: 'user:alice',
      answer: {
        id: HTTP,
        target: { b: 1, a: 2 },
        createdBy: 'user:alice',
        grantId: HTTP,
        grantExpiresAt: null,
        isGrantRevoked: false,
      },
    },
  ])
})

test('migrating down removes the grants that the migration created, and keeps the others', async () => {
  await using database = await createDatabase({ content: 'empty' })
  await migrate(database.pool, { to: 2 })
  await fillOld(database)
  await migrate(database.pool)

  await migrateDown(database.pool, { to: 2 })

  const { rows } = await database.pool.query(`select id, grant_id from carillon.schedules order by id`)
  expect(rows).toEqual([
    { id: HTTP, grant_id: null },
    { id: OTHER, grant_id: null },
    { id: DELETED, grant_id: null },
    { id: GIVEN, grant_id: GRANT },
  ])
  const { rows: grants } = await database.pool.query(`select id from carillon.execution_grants`)
  expect(grants).toEqual([{ id: GRANT }])
})

test('if the owner may not create roles, the migration fails with the statement to run, and can be repeated', async () => {
  await using database = await createDatabase({ content: 'empty' })
  await database.pool.query(`
    drop role if exists plain_owner;
    create role plain_owner login password 'plain' nocreaterole;
    alter database ${database.name} owner to plain_owner`)
  const url = new URL(database.url)
  url.username = 'plain_owner'
  url.password = 'plain'
  const pool = createPool({ connectionString: url.href })

  await expect(migrate(pool)).rejects.toMatchObject({
    code: '42501',
    message: expect.stringContaining('grant carillon_api, carillon_worker to plain_owner') as string,
  })
  await database.pool.query(`grant carillon_api, carillon_worker to plain_owner`)
  expect((await migrate(pool)).applied).toContain('0003_walls')
  await pool.end()
})
