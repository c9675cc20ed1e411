import type pg from 'pg'

/** What the catalogue says about one relation or type of the schema. */
export interface CatalogueObject {
  readonly name: string
  readonly kind: 'table' | 'view' | 'materialized view' | 'foreign table' | 'sequence' | 'type'
  /** A partition is read and purged through its parent. */
  readonly isPartition: boolean
  /** The columns `tenant_id` and `project_id`, as far as it has them. */
  readonly scopeColumns: readonly ScopeColumn[]
  /** Row-level security is on, also for the owner. */
  readonly isWalled: boolean
  /** A view that reads with the permissions of the role that asks. */
  readonly isInvoker: boolean
  /** Each policy in words: its name, what it is for, its roles and its conditions. */
  readonly policies: readonly string[]
  /** What other roles than the owner may do, on the relation or on columns. */
  readonly grants: readonly CatalogueGrant[]
  /** Its foreign keys. */
  readonly references: readonly CatalogueReference[]
}

interface ScopeColumn {
  readonly name: string
  readonly type: string
  readonly isRequired: boolean
}

interface CatalogueGrant {
  /** `api` and `worker` for the roles of this schema; else the name of the role. */
  readonly role: string
  /** `select`, `insert`, … */
  readonly privilege: string
}

interface CatalogueReference {
  readonly table: string
  /** The key includes tenant and project, so no row can refer to one of another tenant. */
  readonly isScoped: boolean
  /** The rows that refer to a row are deleted with it. */
  readonly isCascade: boolean
}

interface CatalogueFunction {
  readonly name: string
  /** It runs with the permissions of its owner, whom no wall stops. */
  readonly isDefiner: boolean
}

export interface Catalogue {
  readonly objects: readonly CatalogueObject[]
  readonly functions: readonly CatalogueFunction[]
}

/** Reads what the schema holds. The search path of the connection leads to the schema. */
export async function readCatalogue(client: pg.ClientBase): Promise<Catalogue> {
  const { rows: objects } = await client.query<CatalogueObject>(OBJECTS)
  const { rows: functions } = await client.query<CatalogueFunction>(FUNCTIONS)
  return { objects, functions }
}

/**
 * The policies that `enable_row_security` makes for a table of the module that the transaction migrates: those of a table that is made and
 * taken back.
 */
export async function readModulePolicies(client: pg.ClientBase, module: string): Promise<readonly string[]> {
  const probe = `${module}_policies`
  await client.query(`savepoint probe; create table ${probe} (tenant_id text not null, project_id text not null)`)
  await client.query('select enable_row_security($1)', [probe])
  const { objects } = await readCatalogue(client)
  await client.query('rollback to savepoint probe')
  return objects.find(({ name }) => name === probe)?.policies ?? []
}

/** Without indexes, which have the permissions of their table, and without the row types of tables. */
const OBJECTS = `
  select relname::text as name,
    case relkind when 'v' then 'view' when 'm' then 'materialized view' when 'f' then 'foreign table' when 'S' then 'sequence'
      when 'c' then 'type' else 'table' end as kind,
    relispartition as "isPartition",
    array(
      select json_build_object(
        'name', attname, 'type', format_type(atttypid, atttypmod), 'isRequired', attnotnull
      )
      from pg_catalog.pg_attribute
      where attrelid = pg_class.oid and attname in ('tenant_id', 'project_id') and not attisdropped
      order by attname
    ) as "scopeColumns",
    relrowsecurity and relforcerowsecurity as "isWalled",
    coalesce('security_invoker=true' = any(reloptions), false) as "isInvoker",
    array(
      select concat_ws(' ', polname, case when polpermissive then 'permissive' else 'restrictive' end, polcmd::text,
        (select string_agg(coalesce(rolname, 'public'), ', ' order by rolname)
          from unnest(polroles) as role left join pg_catalog.pg_roles on pg_roles.oid = role),
        pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid))
      from pg_catalog.pg_policy
      where polrelid = pg_class.oid
      order by polname
    ) as policies,
    array(
      select json_build_object(
        'role', case acl.grantee when 0 then 'public' when to_regrole(current_schema() || '_api') then 'api'
          when to_regrole(current_schema() || '_worker') then 'worker' else acl.grantee::regrole::text end,
        'privilege', lower(acl.privilege_type)
      )
      from (
        select relacl as items
        union all
        select attacl from pg_catalog.pg_attribute where attrelid = pg_class.oid
      ) as lists
      cross join lateral aclexplode(lists.items) as acl
      where acl.grantee <> relowner
      order by acl.grantee, acl.privilege_type
    ) as grants,
    array(
      select json_build_object(
        'table', referenced.relname, 'isCascade', confdeltype = 'c', 'isScoped', (
          select count(*) = 2
          from unnest(conkey) as key
          join pg_catalog.pg_attribute on attrelid = conrelid and attnum = key
          where attname in ('tenant_id', 'project_id')
        )
      )
      from pg_catalog.pg_constraint
      join pg_catalog.pg_class as referenced on referenced.oid = confrelid
      where conrelid = pg_class.oid and contype = 'f' and conparentid = 0
      order by conname
    ) as "references"
  from pg_catalog.pg_class
  where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p', 'v', 'm', 'f', 'S', 'c')
  union all
  select typname, 'type', false, '{}', false, false, '{}', '{}', '{}'
  from pg_catalog.pg_type
  where typnamespace = current_schema()::regnamespace and typtype in ('d', 'e', 'r')
  order by name`

const FUNCTIONS = `
  select proname::text as name, prosecdef as "isDefiner"
  from pg_catalog.pg_proc
  where pronamespace = current_schema()::regnamespace
  order by proname`
