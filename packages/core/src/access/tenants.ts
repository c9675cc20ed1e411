import { tenantInputSchema, type TenantInput } from '@carillon/api'

import type { Db } from '../db/database.ts'
import { transactScoped } from '../db/transact.ts'
import { checkedObject } from '../kernel/checked-object.ts'
import { systemClock, type Clock } from '../kernel/clock.ts'
import { invalidInput, type Problem } from '../kernel/errors.ts'
import { type Scope, scopeOf } from '../kernel/scope.ts'
import { findTenantLimits, saveTenantLimits, type TenantLimits } from './store/tenants.ts'

export { readTenantRules, tenantRulesStatements, toTenantRules } from './store/tenants.ts'
export type { TenantLimits, TenantRules } from './store/tenants.ts'

export interface TenantsDeps {
  readonly db: Db
  readonly clock?: Clock
  /** Returns the problems of a list of allowed hosts, with paths such as `allowedHosts.2`. @default accepts every list */
  readonly checkHosts?: (hosts: readonly string[]) => readonly Problem[]
}

/**
 * The limits of tenants, where they differ from the installation's limits. This class does not check whether the caller may read or
 * change them: the code that uses the class must.
 *
 * An operation that refuses a call throws a CarillonError with a closed `code` and has written nothing.
 */
export class Tenants {
  readonly #db: Db
  readonly #clock: Clock
  readonly #checkHosts: (hosts: readonly string[]) => readonly Problem[]

  constructor(deps: TenantsDeps) {
    this.#db = deps.db
    this.#clock = deps.clock ?? systemClock
    this.#checkHosts = deps.checkHosts ?? (() => [])
  }

  /** All limits are null for a tenant that has none of its own. */
  async get(tenantId: string): Promise<TenantLimits> {
    const found = await transactScoped(this.#db, this.#clock, anyProjectOf(tenantId), (tx) =>
      findTenantLimits(tx, { tenantId }),
    )
    return found ?? { ...limitsOf(tenantId, {}), updatedBy: null, updatedAt: null }
  }

  /**
   * Replaces all limits of the tenant. They apply to the next create, request and attempt. No existing schedule is changed or deleted.
   * @param actor the typed subject that makes the change
   */
  async put(actor: string, tenantId: string, input: TenantInput): Promise<TenantLimits> {
    const scope = anyProjectOf(tenantId)
    const limits = limitsOf(tenantId, checkedObject(input, tenantInputSchema))
    const problems = limits.allowedHosts === null ? [] : this.#checkHosts(limits.allowedHosts)
    if (problems.length > 0) throw invalidInput(problems)
    const now = this.#clock.databaseNow()
    return transactScoped(this.#db, this.#clock, scope, (tx) => saveTenantLimits(tx, { ...limits, actor, now }))
  }
}

/** The row-level security of limits checks the tenant only, so any project will do. */
function anyProjectOf(tenantId: string): Scope {
  return scopeOf({ tenantId, projectId: 'default' })
}

function limitsOf(tenantId: string, input: TenantInput): Omit<TenantLimits, 'updatedBy' | 'updatedAt'> {
  return {
    tenantId,
    maxSchedulesPerProject: input.maxSchedulesPerProject ?? null,
    maxSchedulesPerUser: input.maxSchedulesPerUser ?? null,
    minimumSeconds: input.minimumSeconds ?? null,
    requestsPerMinute: input.requestsPerMinute ?? null,
    allowedHosts: input.allowedHosts ?? null,
  }
}
