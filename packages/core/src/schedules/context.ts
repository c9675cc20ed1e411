import { PROJECT_SCHEDULES, TENANT_SLOT_DISTANCE_SECONDS, USER_SCHEDULES } from '@carillon/api'

import { withQuota } from '../access/quota.ts'
import { readTenantRules, type TenantRules, tenantRulesStatements, toTenantRules } from '../access/tenants.ts'
import { CadenceCache } from '../cadences/cadence-cache.ts'
import type { Tx } from '../db/database.ts'
import { SQLSTATE, sqlStateOf } from '../db/sqlstate.ts'
import { type FirstStatements, transactScoped } from '../db/transact.ts'
import { systemClock, type Clock } from '../kernel/clock.ts'
import { Events } from '../kernel/events.ts'
import { type Caller, type Scope, scopeOf } from '../kernel/scope.ts'
import { checkedRetentionMs } from '../policy/retention-days.ts'
import type { Target } from '../ports/target.ts'
import { unknownGrant } from './grant-choice.ts'
import type { InputRules } from './input.ts'
import type { SchedulerDeps, SchedulerOptions } from './options.ts'

/** One transaction in the caller's tenant and project. Without a caller it sees no row of any tenant (I9). */
type Transact = <Result>(
  caller: Caller | null,
  work: (tx: Tx, read: readonly unknown[]) => Promise<Result>,
  /** `work` gets the rows of all of them as `read`. */
  first?: FirstStatements,
) => Promise<Result>

/** What every operation on schedules works with. */
export interface SchedulerContext {
  readonly transact: Transact
  readonly clock: Clock
  readonly events: Events
  readonly targets: ReadonlyMap<string, Target>
  readonly cadences: CadenceCache
  /** True if a store outside Carillon keeps the secrets: then no create or edit can check that a secret exists. */
  readonly areSecretsElsewhere: boolean
  /** The minimum distance between two slots of a cadence, for tenants without a minimum of their own. */
  readonly minimumSeconds: number
  readonly retentionMs: number
}

export function createContext(deps: SchedulerDeps, options: SchedulerOptions): SchedulerContext {
  const { db, clock = systemClock } = deps
  // Null means no limit. Only an absent option gets the default.
  const {
    maxSchedulesPerProject: perProject = PROJECT_SCHEDULES.default,
    maxSchedulesPerUser: perUser = USER_SCHEDULES.default,
  } = options
  return {
    transact: (caller, work, first) => {
      const scope = caller === null ? null : scopeOf(caller)
      return withQuota({ perProject, perUser }, (settings) => transactScoped(db, clock, scope, work, settings, first))
    },
    clock,
    areSecretsElsewhere: options.areSecretsElsewhere ?? false,
    events: deps.events ?? new Events(),
    targets: deps.targets,
    cadences: new CadenceCache(),
    minimumSeconds: options.minimumSeconds ?? TENANT_SLOT_DISTANCE_SECONDS.default,
    retentionMs: checkedRetentionMs(options.retentionDays),
  }
}

/** Runs one transaction with the rules for the caller's inputs. They are read in one message with `begin`, so they cost no round trip. */
export async function transactWithRules<Result>(
  context: SchedulerContext,
  caller: Caller,
  work: (tx: Tx, rules: InputRules) => Promise<Result>,
): Promise<Result> {
  return context.transact(
    caller,
    (tx, read) => work(tx, rulesOf(context, toTenantRules(read))),
    tenantRulesStatements(context.clock.databaseNow()),
  )
}

/** The rules for a caller's inputs: the tenant's own, or else the installation's. */
export async function readRules(context: SchedulerContext, tx: Tx, { tenantId }: Caller): Promise<InputRules> {
  return rulesOf(context, await readTenantRules(tx, { tenantId, now: context.clock.databaseNow() }))
}

function rulesOf(
  { targets, minimumSeconds, cadences, clock, areSecretsElsewhere }: SchedulerContext,
  rules: TenantRules,
): InputRules {
  return {
    targets,
    cadences,
    clock,
    areSecretsElsewhere,
    now: rules.now,
    minimumSeconds: rules.minimumSeconds ?? minimumSeconds,
    limits: { allowedHosts: rules.allowedHosts },
  }
}

/** The fields of every event about a change of a schedule. */
export function changeEvent(caller: Caller, scheduleId: string): { scheduleId: string; actor: string } & Scope {
  const { tenantId, projectId, subject } = caller
  return { tenantId, projectId, scheduleId, actor: subject }
}

/**
 * Waits for a write of schedules that name their grants. The foreign key decides whether each grant exists in this project, because a
 * grant may be deleted at any time.
 * @throws CarillonError `invalid_input` if a grant does not exist
 */
export async function refuseUnknownGrant(write: Promise<void>): Promise<void> {
  try {
    await write
  } catch (error) {
    if (sqlStateOf(error) !== SQLSTATE.foreignKeyViolation) throw error
    throw unknownGrant()
  }
}
