import type { Catalogue, CatalogueObject } from './module-catalogue.ts'

/** True for the name of an object of a module: it begins with the module's name and an underscore. */
export function isOf(module: string, object: string): boolean {
  return object.startsWith(`${module}_`)
}

/** What the API needs for a purge, besides whatever the operations of the module need. */
const NEEDED = ['delete', 'select'] as const
/** What each of the two roles may be granted on a table. Row-level security does not limit `truncate`, `references` or `trigger`. */
const ALLOWED: Readonly<Record<'table' | 'sequence', readonly string[]>> = {
  table: ['delete', 'insert', 'select', 'update'],
  sequence: ['select', 'usage'],
}
const ROLES: readonly string[] = ['api', 'worker']

/**
 * What is wrong with the objects of a module, each in one sentence: they must be behind the same walls as core's own tables, and a purge of
 * a project must find and remove their rows.
 * @param policies the policies that `enable_row_security` makes for a table of a module
 */
export function lintModule(module: string, { objects, functions }: Catalogue, policies: readonly string[]): string[] {
  const own = objects.filter(({ name }) => isOf(module, name))
  return [
    ...own.flatMap((object) => objectFaults(module, object, policies)),
    ...functions
      .filter(({ name, isDefiner }) => isOf(module, name) && isDefiner)
      .map(({ name }) => `function ${name}: expected one that runs as its caller, got security definer`),
    ...cycleFaults(own),
  ]
}

function objectFaults(module: string, object: CatalogueObject, policies: readonly string[]): string[] {
  const { name, kind, isInvoker } = object
  switch (kind) {
    case 'type':
      return []
    case 'sequence':
      return grantFaults(object, ALLOWED.sequence)
    case 'view':
      return isInvoker ? grantFaults(object, ['select']) : [`view ${name}: expected security_invoker = true, got none`]
    case 'materialized view':
    case 'foreign table':
      return [`${kind} ${name}: expected a table, which row-level security can wall, got a ${kind}`]
    case 'table':
      return [...tableFaults(module, object, policies), ...grantFaults(object, ALLOWED.table)]
  }
}

function tableFaults(module: string, object: CatalogueObject, expectedPolicies: readonly string[]): string[] {
  const { name, isPartition, isWalled, policies, grants, references } = object
  const missing = ['tenant_id', 'project_id'].filter((column) => !hasScopeColumn(object, column))
  const needed = isPartition ? [] : NEEDED
  const ungranted = needed.filter(
    (privilege) => !grants.some((grant) => grant.role === 'api' && grant.privilege === privilege),
  )
  const foreign = references.filter(({ table }) => !isOf(module, table))
  const unscoped = references.filter(({ table, isScoped }) => isOf(module, table) && !isScoped)
  const isSame =
    policies.length === expectedPolicies.length && policies.every((policy) => expectedPolicies.includes(policy))
  return [
    ...missing.map((column) => `table ${name}: expected a column ${column} text not null, got none`),
    ...(isWalled
      ? []
      : [`table ${name}: expected forced row-level security, got none: select enable_row_security('${name}')`]),
    ...(isSame || !isWalled
      ? []
      : [`table ${name}: expected the policies that enable_row_security makes, got ${policies.join('; ') || 'none'}`]),
    ...ungranted.map(
      (privilege) => `table ${name}: expected ${privilege} to be granted to the role of the API, which purges projects`,
    ),
    ...unscoped.map(
      ({ table }) => `table ${name}: expected a foreign key with tenant_id and project_id, got one to ${table} without`,
    ),
    ...foreign.map(
      ({ table }) =>
        `table ${name}: expected foreign keys to tables of the module, got one to ${table}, whose rows others delete`,
    ),
  ]
}

function hasScopeColumn({ scopeColumns }: CatalogueObject, column: string): boolean {
  return scopeColumns.some(({ name, type, isRequired }) => name === column && type === 'text' && isRequired)
}

function grantFaults({ name, kind, grants }: CatalogueObject, allowed: readonly string[]): string[] {
  return grants
    .filter(({ role, privilege }) => !ROLES.includes(role) || !allowed.includes(privilege))
    .map(({ role, privilege }) => {
      const roles = 'the roles of the API and the workers'
      return `${kind} ${name}: expected at most ${allowed.join(', ')} to be granted to ${roles}, got ${privilege} to ${role}`
    })
}

/** A purge deletes portions of rows, those that refer to others first. In a circle none is first. */
function cycleFaults(own: readonly CatalogueObject[]): string[] {
  const circle = purgeOrder(own).circle
  return circle.length === 0
    ? []
    : [`tables ${circle.join(', ')}: expected foreign keys without a circle, got one: make it on delete cascade`]
}

/** A table with the tables that its foreign keys lead to. */
interface Referring {
  readonly name: string
  readonly references: readonly { readonly table: string; readonly isCascade: boolean }[]
}

/** The tables in the order in which their rows can be deleted, and those that are in a circle. */
export function purgeOrder(tables: readonly Referring[]): {
  readonly order: readonly string[]
  readonly circle: readonly string[]
} {
  const order: string[] = []
  let left = tables
  for (;;) {
    const held = new Set(
      left.flatMap(({ references }) => references.filter(({ isCascade }) => !isCascade).map(({ table }) => table)),
    )
    const free = left.filter(({ name }) => !held.has(name))
    if (free.length === 0) return { order, circle: left.map(({ name }) => name) }
    order.push(...free.map(({ name }) => name))
    left = left.filter(({ name }) => held.has(name))
  }
}
