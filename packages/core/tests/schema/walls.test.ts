import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { createDatabase, type TestDatabase } from '../database.ts'

/** The roles of the API and of workers. Neither may have more permissions than the migrations grant. */
const ROLES = ['carillon_api', 'carillon_worker']

/**
 * Security definer functions, each with the reason why it may be one. A new one must be listed here.
 * None returns a row of a tenant.
 */
const DEFINER_FUNCTIONS = {
  'create_month(text,date)': 'creates a partition of the ledger, which only the owner can; reads no row',
  'drop_month(date)':
    'drops a month of the ledger after the retention, for workers only; returns whether a run in it is open',
  'is_callback(uuid,text,text,bytea)':
    'compares the mac of a callback with the secret of the installation; reads no run',
  'list_unowned_findings(integer)': 'lists the findings about schedules that are gone, whose rows have no tenant',
  'read_callback_key()': 'returns the secret of the installation to workers, which make the tokens of callbacks',
  'request_audit(timestamp with time zone)': 'records a request in the only row of the audit; returns nothing',
}

let database: TestDatabase

beforeAll(async () => {
  database = await createDatabase()
})
afterAll(() => database[Symbol.asyncDispose]())

async function read<Row extends object>(text: string): Promise<Row[]> {
  const { rows } = await database.pool.query<Row>(text)
  return rows
}

/** Tables and partitions that hold rows of tenants. */
const SCOPED_TABLES = `
  select pg_class.oid, relname, relrowsecurity, relforcerowsecurity, relispartition, relacl
  from pg_class
  join pg_attribute on attrelid = pg_class.oid and attname = 'tenant_id' and not attisdropped
  where relnamespace = 'carillon'::regnamespace and relkind in ('r', 'p')`

describe('I9: row-level security', () => {
  test('is enabled on every table and partition with a tenant, and forced for the owner', async () => {
    const tables = await read<{ relname: string; relrowsecurity: boolean; relforcerowsecurity: boolean }>(SCOPED_TABLES)

    expect(tables.length).toBeGreaterThan(13 + 2 * 12)
    expect(tables.filter((table) => !table.relrowsecurity || !table.relforcerowsecurity)).toEqual([])
  })

  test('has one policy for the API per table, for every command, with the same condition for reads and writes', async () => {
    const policies = await read<{ relname: string; using: string; check: string }>(`
      select relname, pg_get_expr(polqual, polrelid) as using, pg_get_expr(polwithcheck, polrelid) as check
      from (${SCOPED_TABLES}) as scoped
      left join pg_policy on polrelid = scoped.oid and polcmd = '*' and polpermissive
        and polroles = array['carillon_api'::regrole::oid]
      order by relname`)
    const ofTenant = `(tenant_id = NULLIF(current_setting('carillon.tenant_id'::text, true), ''::text))`
    const ofProject = `(project_id = NULLIF(current_setting('carillon.project_id'::text, true), ''::text))`
    const expected = (relname: string) => (relname === 'tenants' ? ofTenant : `(${ofTenant} AND ${ofProject})`)

    expect(policies).toEqual(
      policies.map(({ relname }) => ({ relname, using: expected(relname), check: expected(relname) })),
    )
  })

  test('has one other policy for the API: a caller that presents an API key can read the row of that key', async () => {
    const policies = await read(`
      select polrelid::regclass::text as relation, polname::text as name, polcmd::text as command,
        pg_get_expr(polqual, polrelid) as using
      from pg_policy
      where 'carillon_api'::regrole = any(polroles) and polname <> 'tenant_wall'`)

    expect(policies).toEqual([
      {
        relation: 'carillon.api_keys',
        name: 'key_by_hash',
        command: 'r',
        using: `(hash = decode(NULLIF(current_setting('carillon.key_hash'::text, true), ''::text), 'hex'::text))`,
      },
    ])
  })

  test('has no policy for PUBLIC', async () => {
    expect(await read(`select polname from pg_policy where 0 = any(polroles)`)).toEqual([])
  })

  test('is bypassed by no view, no materialised view, and no security definer function but those that are listed', async () => {
    const views = await read(`
      select relname from pg_class where relnamespace = 'carillon'::regnamespace and relkind in ('v', 'm', 'f')`)
    const definers = await read<{ name: string; config: string[] | null; is_public: boolean }>(`
      select oid::regprocedure::text as name, proconfig as config,
        has_function_privilege('public', oid, 'execute') as is_public
      from pg_proc
      where pronamespace = 'carillon'::regnamespace and prosecdef
      order by oid::regprocedure::text collate "C"`)

    expect(views).toEqual([])
    expect(definers).toEqual(
      Object.keys(DEFINER_FUNCTIONS).map((name) => ({
        name: `carillon.${name}`,
        config: ['search_path=carillon, pg_temp'],
        is_public: false,
      })),
    )
  })

  test('is not bypassed by types in pg_temp: a security definer function does not use types that the API creates there', async () => {
    const client = await database.pool.connect()
    await client.query(`
      begin; set local role carillon_api;
      create table pg_temp.loot (who text);
      create function pg_temp.steal(value pg_catalog.date) returns boolean language plpgsql as
        $$begin insert into pg_temp.loot values (current_user); return true; end$$;
      create domain pg_temp.date as pg_catalog.date check (pg_temp.steal(value))`)
    await client.query(`select carillon.create_month('runs', '2031-01-01'::pg_catalog.date)`)
    const { rows } = await client.query('select who from pg_temp.loot')
    await client.query('rollback')
    client.release()

    expect(rows).toEqual([])
  })

  test('is not bypassed through a partition, because no role has a privilege on one', async () => {
    const granted = await read(
      `select relname, relacl from (${SCOPED_TABLES}) as scoped where relispartition and relacl is not null`,
    )
    const columns = await read(`
      select relname from (${SCOPED_TABLES}) as scoped join pg_attribute on attrelid = scoped.oid
      where relispartition and attacl is not null`)

    expect([granted, columns]).toEqual([[], []])
  })
})

describe('I9: the roles', () => {
  test('are no superusers, cannot bypass row-level security, log in or create anything, and are members of no other role', async () => {
    const roles = await read(`
      select rolname::text as name, rolsuper or rolbypassrls or rolcreaterole or rolcreatedb or rolcanlogin or rolreplication
        as is_privileged,
        array(select roleid::regrole::text from pg_auth_members where member = pg_roles.oid) as member_of
      from pg_roles where rolname = any('{${ROLES.join(',')}}') order by rolname`)

    expect(roles).toEqual(ROLES.map((name) => ({ name, is_privileged: false, member_of: [] })))
  })

  test('own nothing', async () => {
    const roles = ROLES.map((name) => `'${name}'::regrole`).join(', ')
    const owned = await read(`
      select oid::regclass::text as name from pg_class where relowner in (${roles})
      union all select oid::regprocedure::text from pg_proc where proowner in (${roles})
      union all select nspname from pg_namespace where nspowner in (${roles})`)

    expect(owned).toEqual([])
  })

  test('may not create anything in the schema', async () => {
    const [rights] = await read<Record<string, boolean>>(`
      select has_schema_privilege('carillon_api', 'carillon', 'create') as api_create,
        has_schema_privilege('carillon_worker', 'carillon', 'create') as worker_create`)

    expect(rights).toEqual({ api_create: false, worker_create: false })
  })

  test('let the API read the progress of services, but not their cursors', async () => {
    const rights = await read<{ name: string; can: boolean }>(`
      select attname::text as name, has_column_privilege('carillon_api', attrelid, attname, 'select') as can
      from pg_attribute
      where attrelid = 'carillon.service_turns'::regclass and attnum > 0 and not attisdropped
      order by attnum`)

    expect(rights.filter(({ can }) => can).map(({ name }) => name)).toEqual([
      'name',
      'next_at',
      'requested_at',
      'reached_at',
    ])
    expect(
      await read(
        `select has_table_privilege('carillon_api', 'carillon.service_turns', 'insert, update, delete') as can`,
      ),
    ).toEqual([{ can: false }])
  })

  test('do not let the worker read keys or write whole rows of schedules, revisions, grants, members, secrets or tenants', async () => {
    const tables = ['api_keys', 'schedule_revisions', 'execution_grants', 'members', 'secrets', 'tenants', 'schedules']
    const rights = await read<{ relation: string; can: string[] }>(`
      select relation, array(
        select privilege from unnest(array['SELECT', 'INSERT', 'UPDATE', 'TRUNCATE']) as privilege
        where has_table_privilege('carillon_worker', 'carillon.' || relation, privilege)
      ) as can
      from unnest(array['${tables.join("','")}']) as relation`)

    expect(Object.fromEntries(rights.map(({ relation, can }) => [relation, can]))).toEqual({
      api_keys: [],
      schedule_revisions: ['SELECT'],
      execution_grants: ['SELECT'],
      members: ['SELECT'],
      secrets: ['SELECT'],
      tenants: ['SELECT'],
      schedules: ['SELECT'],
    })
  })

  test('may not move a row to another tenant, project, schedule or owner', async () => {
    const movable = await read(`
      select relname, attname, grantee.role
      from (${SCOPED_TABLES}) as scoped
      join pg_attribute on attrelid = scoped.oid
      cross join unnest(array['${ROLES.join("','")}']) as grantee(role)
      where attname in ('tenant_id', 'project_id', 'schedule_id', 'owner_subject', 'id')
        and has_column_privilege(grantee.role, scoped.oid, attname, 'update')
        and not (relname = 'idempotent_answers' and attname = 'schedule_id')`)

    expect(movable).toEqual([])
  })
})

describe('without the right tenant and project', () => {
  const SETTINGS = {
    'nothing is set': '',
    'both are empty': `select set_config('carillon.tenant_id', '', true), set_config('carillon.project_id', '', true);`,
    'only the tenant is set': `select set_config('carillon.tenant_id', 'acme', true);`,
    'only the project is set': `select set_config('carillon.project_id', 'web', true);`,
    'another tenant is set': `select set_config('carillon.tenant_id', 'evil', true), set_config('carillon.project_id', 'web', true);`,
    'another project is set': `select set_config('carillon.tenant_id', 'acme', true), set_config('carillon.project_id', 'x', true);`,
  }

  beforeAll(async () => {
    await database.pool.query(ONE_ROW_EACH)
  })

  test.each(Object.entries(SETTINGS))('when %s, no table shows a row', async (_what, settings) => {
    const tables = await read<{ relname: string }>(
      `${SCOPED_TABLES} and not relispartition and relname <> 'audit_findings'`,
    )
    const seen: Record<string, unknown> = {}
    for (const { relname } of tables) seen[relname] = await countAs('carillon_api', settings, relname)
    const { tenants, ...others } = seen

    expect(Object.values(others).filter((count) => count !== 0)).toEqual([])
    expect(tenants).toBe(/'carillon.tenant_id', 'acme'/.test(settings) ? 1 : 0)
    // The rows exist: the API reads them with the right tenant and project.
    expect(await countAs('carillon_api', OWN, 'schedules')).toBe(1)
  })

  test('no row of another tenant can be written, and the error does not reveal whether the row exists', async () => {
    const insert = `insert into carillon.members (tenant_id, project_id, subject, role, added_by_subject, added_at)
      values ('acme', 'web', $1, 'admin', 'user:mallory', now())`
    const errors: unknown[] = []
    for (const subject of ['user:alice', 'user:nobody']) {
      errors.push(await errorAs(SETTINGS['another tenant is set'], insert.replace('$1', `'${subject}'`)))
    }

    // Postgres checks the policy before the primary key, so the error is the same for a row that exists.
    expect(errors).toEqual([
      { code: '42501', message: 'new row violates row-level security policy for table "members"' },
      { code: '42501', message: 'new row violates row-level security policy for table "members"' },
    ])
  })

  test('no finding of another tenant can be read, neither from the table nor among findings without a tenant', async () => {
    await database.pool.query(`
      insert into carillon.audits (id, is_whole, audited_from, audited_to, started_at, completed_at, schedule_count, slot_count,
          unreadable_count, truncated_count, finding_count, repaired_count)
        values ('${ID}', true, now(), now(), now(), now(), 1, 1, 0, 0, 2, 0);
      insert into carillon.audit_findings (audit_id, ordinal, kind, tenant_id, project_id, detail, is_repaired, found_at)
        values ('${ID}', 1, 'slot_lost', 'acme', 'web', 'of acme', false, now()),
          ('${ID}', 2, 'slot_lost', null, null, 'of no tenant', false, now())`)

    expect(await countAs('carillon_api', SETTINGS['another tenant is set'], 'audit_findings')).toBe(0)
    expect(await countAs('carillon_api', OWN, 'audit_findings')).toBe(1)
    expect(await countAs('carillon_api', '', `list_unowned_findings(10) where detail = 'of no tenant'`)).toBe(1)
    expect(await countAs('carillon_api', '', 'list_unowned_findings(10)')).toBe(1)
  })

  const ID = '01995c0e-0000-7000-8000-000000000001'
  const OWN = `select set_config('carillon.tenant_id', 'acme', true), set_config('carillon.project_id', 'web', true);`
  /** Inserts one row into each table. */
  const ONE_ROW_EACH = `
    insert into carillon.execution_grants (id, tenant_id, project_id, subject, scopes, created_by_subject, created_at)
      values ('${ID}', 'acme', 'web', 'user:alice', '{test:dispatch:*}', 'user:alice', now());
    insert into carillon.schedules (id, tenant_id, project_id, owner_subject, target_kind, state, revision, grant_id,
        next_slot_at, due_at, auto_pause_threshold, created_by_subject, created_at)
      values ('${ID}', 'acme', 'web', 'user:alice', 'test', 'active', 1, '${ID}', '2099-01-01', '2099-01-01', 10,
        'user:alice', now());
    insert into carillon.schedule_revisions (schedule_id, revision, tenant_id, project_id, name, cadence_kind, cadence_once,
        target_kind, target, policy, grant_id, required_scope, changed_by_subject, changed_at)
      values ('${ID}', 1, 'acme', 'web', 'n', 'once', '{}', 'test', '{}', '{}', '${ID}', 'test:dispatch:x', 'user:alice', now());
    insert into carillon.schedule_changes (schedule_id, tenant_id, project_id, change, revision, actor_subject, changed_at)
      values ('${ID}', 'acme', 'web', 'created', 1, 'user:alice', now());
    insert into carillon.slot_backlogs (schedule_id, revision, until, tenant_id, project_id, next_slot_at, reason, made_at)
      values ('${ID}', 1, '2026-03-02', 'acme', 'web', '2026-03-01', 'superseded', now());
    insert into carillon.runs (schedule_id, scheduled_for, id, tenant_id, project_id, revision, trigger, state, begun_at,
        due_at, waits_for, lane)
      values ('${ID}', '2026-03-02', '${ID}', 'acme', 'web', 1, 'manual', 'pending', now(), now(), 'worker', 'test.1');
    insert into carillon.attempts (schedule_id, scheduled_for, attempt, tenant_id, project_id, worker_id, outcome, started_at,
        completed_at)
      values ('${ID}', '2026-03-02', 1, 'acme', 'web', '${ID}', 'failed', now(), now());
    insert into carillon.api_keys (id, tenant_id, project_id, subject, role, prefix, hash, created_by_subject, created_at)
      values ('${ID}', 'acme', 'web', 'user:alice', 'admin', 'car_', decode(repeat('ab', 32), 'hex'), 'user:alice', now());
    insert into carillon.idempotent_answers (tenant_id, project_id, subject, key, request_hash, schedule_id, answer, answered_at)
      values ('acme', 'web', 'user:alice', 'k', decode(repeat('ab', 32), 'hex'), '${ID}', '{}', now());
    insert into carillon.members (tenant_id, project_id, subject, role, added_by_subject, added_at)
      values ('acme', 'web', 'user:alice', 'admin', 'user:root', now());
    insert into carillon.secrets (tenant_id, project_id, name, version, key_id, nonce, ciphertext, created_by_subject,
        created_at, updated_by_subject, updated_at)
      values ('acme', 'web', 's', 1, 'k', decode(repeat('ab', 12), 'hex'), decode(repeat('ab', 16), 'hex'), 'user:alice',
        now(), 'user:alice', now());
    insert into carillon.tenants (tenant_id, updated_by_subject, updated_at) values ('acme', 'user:root', now());`

  async function countAs(role: string, settings: string, relation: string): Promise<number> {
    const results = (await database.pool.query(
      `begin; set local role ${role}; ${settings} select count(*)::int as count from carillon.${relation}; rollback`,
    )) as unknown as { rows: { count: number }[] }[]
    return results.at(-2)?.rows[0]?.count ?? Number.NaN
  }

  /** The error of a statement of the API; undefined if it succeeds. The statement is rolled back. */
  async function errorAs(settings: string, statement: string): Promise<{ code: string; message: string } | undefined> {
    const client = await database.pool.connect()
    try {
      await client.query(`begin; set local role carillon_api; ${settings}`)
      await client.query(statement)
      return undefined
    } catch (error) {
      const { code, message } = error as { code: string; message: string }
      return { code, message }
    } finally {
      await client.query('rollback')
      client.release()
    }
  }
})
