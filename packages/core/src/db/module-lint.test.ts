import { describe, expect, test } from 'vitest'

import type { CatalogueObject } from './module-catalogue.ts'
import { isOf, lintModule, purgeOrder } from './module-lint.ts'

const POLICIES = ['pipeline permissive', 'tenant_wall permissive']
const TABLE: CatalogueObject = {
  name: 'billing_accounts',
  kind: 'table',
  isPartition: false,
  scopeColumns: [
    { name: 'project_id', type: 'text', isRequired: true },
    { name: 'tenant_id', type: 'text', isRequired: true },
  ],
  isWalled: true,
  isInvoker: false,
  policies: POLICIES,
  grants: ['select', 'delete'].map((privilege) => ({ role: 'api', privilege })),
  references: [],
}

function faultsOf(changes: Partial<CatalogueObject>): string[] {
  return lintModule('billing', { objects: [{ ...TABLE, ...changes }], functions: [] }, POLICIES)
}

describe('the lint of a module’s objects', () => {
  test('finds nothing in a table behind all walls, and looks at no object of others', () => {
    expect(faultsOf({})).toEqual([])
    expect(faultsOf({ name: 'billingplus_accounts', isWalled: false })).toEqual([])
  })

  test.each<[what: string, changes: Partial<CatalogueObject>, fault: RegExp]>([
    [
      'no tenant',
      { scopeColumns: TABLE.scopeColumns.slice(0, 1) },
      /expected a column tenant_id text not null, got none/,
    ],
    [
      'a tenant that may be null',
      { scopeColumns: TABLE.scopeColumns.map((column) => ({ ...column, isRequired: column.name !== 'tenant_id' })) },
      /expected a column tenant_id text not null/,
    ],
    ['no forced row-level security', { isWalled: false }, /expected forced row-level security, got none/],
    [
      'a policy that is missing',
      { policies: POLICIES.slice(1) },
      /expected the policies .*, got tenant_wall permissive/,
    ],
    ['a further policy', { policies: [...POLICIES, 'open permissive'] }, /expected the policies/],
    [
      'a permission of another role',
      { grants: [...TABLE.grants, { role: 'dbo', privilege: 'select' }] },
      /got select to dbo/,
    ],
    [
      'a permission to truncate',
      { grants: [...TABLE.grants, { role: 'worker', privilege: 'truncate' }] },
      /got truncate to worker/,
    ],
    ['no permission to purge', { grants: TABLE.grants.slice(0, 1) }, /expected delete to be granted/],
    [
      'a foreign key to another module',
      { references: [{ table: 'recipes_x', isCascade: true, isScoped: true }] },
      /got one to recipes_x/,
    ],
    [
      'a foreign key to itself',
      { references: [{ table: TABLE.name, isCascade: false, isScoped: true }] },
      /expected foreign keys without a circle/,
    ],
    [
      'a foreign key without the tenant',
      { references: [{ table: 'billing_x', isCascade: true, isScoped: false }] },
      /got one to billing_x without/,
    ],
    ['a view that reads as its owner', { kind: 'view' }, /view billing_accounts: expected security_invoker = true/],
    [
      'a materialized view',
      { kind: 'materialized view' },
      /which row-level security can wall, got a materialized view/,
    ],
    [
      'a sequence that others may set',
      { kind: 'sequence', grants: [{ role: 'api', privilege: 'update' }] },
      /got update to api/,
    ],
  ])('finds %s', (_what, changes, fault) => {
    expect(faultsOf(changes)).toEqual([expect.stringMatching(fault)])
  })

  test('asks nothing of a partition that its parent has', () => {
    expect(faultsOf({ isPartition: true, grants: [] })).toEqual([])
  })

  test('finds a function that runs as its owner', () => {
    const functions = [
      { name: 'billing_sum', isDefiner: false },
      { name: 'billing_peek', isDefiner: true },
      { name: 'drop_month', isDefiner: true },
    ]

    expect(lintModule('billing', { objects: [], functions }, [])).toEqual([
      expect.stringMatching(/^function billing_peek: expected/),
    ])
  })
})

test('a name belongs to a module if it begins with the module’s name and an underscore', () => {
  expect([isOf('billing', 'billing_accounts'), isOf('billing', 'billing'), isOf('billing', 'billingplus_x')]).toEqual([
    true,
    false,
    false,
  ])
})

describe('the order in which a purge deletes the rows of tables', () => {
  const refer = (name: string, ...tables: string[]) => ({
    name,
    references: tables.map((table) => ({ table, isCascade: false })),
  })

  test('begins with the tables that refer to others', () => {
    const { order } = purgeOrder([refer('accounts'), refer('lines', 'invoices'), refer('invoices', 'accounts')])

    expect(order).toEqual(['lines', 'invoices', 'accounts'])
  })

  test('leaves out tables in a circle, and says which', () => {
    expect(purgeOrder([refer('a', 'b'), refer('b', 'a'), refer('c')])).toEqual({ order: ['c'], circle: ['a', 'b'] })
  })
})
