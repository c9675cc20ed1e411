import { z } from 'zod'

import { systemClock, type Clock } from '../clock.ts'
import { invalidInput } from '../errors.ts'
import { placeOf } from '../place.ts'
import type { Problem } from '../problem.ts'
import type { Db } from '../store/database.ts'
import { findTenantLimits, saveTenantLimits, type TenantLimits } from '../store/tenants.ts'
import { transactWithin, type Place } from '../store/walled-transaction.ts'
import { checkedObject, expected, storableText } from './checked-object.ts'

export interface TenantsDeps {
  readonly db: Db
  readonly clock?: Clock
  /** What is wrong with a list of hosts, with paths from the input's root: `allowedHosts.2`. @default nothing */
  readonly checkHosts?: (hosts: readonly string[]) => readonly Problem[]
}

/** What a tenant may have. Null or absent: what the installation says. */
export interface TenantLimitsInput {
  /** 1..1,000,000 */
  readonly maxSchedulesPerProject?: number | null | undefined
  /** 1..1,000,000 */
  readonly maxSchedulesPerUser?: number | null | undefined
  /** 1..86,400 */
  readonly minimumSeconds?: number | null | undefined
  /** 1..1,000,000,000 */
  readonly requestsPerMinute?: number | null | undefined
  /** 0..200 of 1 to 300 characters; an empty list allows none. */
  readonly allowedHosts?: readonly string[] | null | undefined
}

const SCHEDULES_MAX = 1_000_000
const SECONDS_MAX = 86_400
const REQUESTS_MAX = 1_000_000_000
const HOSTS_MAX = 200
const HOST_MAX_LENGTH = 300

const hostsShape = expected(`a list of 0 to ${HOSTS_MAX} hosts`)

const LIMITS_INPUT = z.strictObject(
  {
    maxSchedulesPerProject: countUpTo(SCHEDULES_MAX),
    maxSchedulesPerUser: countUpTo(SCHEDULES_MAX),
    minimumSeconds: countUpTo(SECONDS_MAX),
    requestsPerMinute: countUpTo(REQUESTS_MAX),
    allowedHosts: z.array(storableText(HOST_MAX_LENGTH), hostsShape).max(HOSTS_MAX, hostsShape).nullish(),
  },
  expected('an object'),
)

/**
 * What tenants may have, where it differs from what the installation allows to all (E-31, E-32). Whether whoever asks may
 * know it, or say it, is for whoever calls to decide.
 *
 * Throws CarillonError with a closed `code`; whatever throws has written nothing.
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

  /** Of a tenant of which nobody has said anything, all is null. */
  async get(tenantId: string): Promise<TenantLimits> {
    const found = await transactWithin(this.#db, this.#clock, anywhereIn(tenantId), (tx) =>
      findTenantLimits(tx, { tenantId }),
    )
    return found ?? { ...limitsOf(tenantId, {}), updatedBy: null, updatedAt: null }
  }

  /**
   * Replaces all that was said before. Holds from the next create, request and attempt on; what a tenant has already stays.
   * @param actor the typed subject of whoever says it
   */
  async put(actor: string, tenantId: string, input: TenantLimitsInput): Promise<TenantLimits> {
    const place = anywhereIn(tenantId)
    const limits = limitsOf(tenantId, checkedObject(input, LIMITS_INPUT))
    const problems = limits.allowedHosts === null ? [] : this.#checkHosts(limits.allowedHosts)
    if (problems.length > 0) throw invalidInput(problems)
    const now = this.#clock.databaseNow()
    return transactWithin(this.#db, this.#clock, place, (tx) => saveTenantLimits(tx, { ...limits, actor, now }))
  }
}

/** The wall around what a tenant may have looks at the tenant alone: any project will do. */
function anywhereIn(tenantId: string): Place {
  return placeOf({ tenantId, projectId: 'default' })
}

function limitsOf(tenantId: string, input: TenantLimitsInput): Omit<TenantLimits, 'updatedBy' | 'updatedAt'> {
  return {
    tenantId,
    maxSchedulesPerProject: input.maxSchedulesPerProject ?? null,
    maxSchedulesPerUser: input.maxSchedulesPerUser ?? null,
    minimumSeconds: input.minimumSeconds ?? null,
    requestsPerMinute: input.requestsPerMinute ?? null,
    allowedHosts: input.allowedHosts ?? null,
  }
}

function countUpTo(max: number) {
  const shape = expected(`a whole number from 1 to ${max}, or null`)
  return z.int(shape).min(1, shape).max(max, shape).nullish()
}
