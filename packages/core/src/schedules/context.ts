import { withQuota } from '../access/quota.ts'
import { readTenantRules, type TenantRules, tenantRulesText, toTenantRules } from '../access/tenants.ts'
import { CadenceCache } from '../cadences/cadence-cache.ts'
import type { Tx } from '../db/database.ts'
import { SQLSTATE, sqlStateOf } from '../db/sqlstate.ts'
import { transactScoped } from '../db/transact.ts'
import { systemClock, type Clock } from '../kernel/clock.ts'
import { Events } from '../kernel/events.ts'
import { type Caller, scopeOf } from '../kernel/scope.ts'
import { checkedRetentionMs } from '../policy/retention-days.ts'
import type { Target } from '../ports/target.ts'
import { unknownGrant } from './grant-choice.ts'
import type { InputRules } from './input.ts'
import type { SchedulerDeps, SchedulerOptions } from './options.ts'

const MINIMUM_SECONDS_DEFAULT = 60
const PER_PROJECT_DEFAULT = 500
const PER_USER_DEFAULT = 50

/** One transaction in the caller's tenant and project. Without a caller it sees no row of any tenant (I9). */
type Transact = <Result>(
  caller: Caller | null,
  work: (tx: Tx, read: readonly unknown[]) => Promise<Result>,
  /** A statement that Postgres runs in the same message as `begin`; `work` gets its rows as `read`. */
  first?: string,
) => Promise<Result>

/** What every operation on schedules works with. */
export interface SchedulerContext {
  readonly transact: Transact
  readonly clock: Clock
  readonly events: Events
  readonly targets: ReadonlyMap<string, Target>
  readonly cadences: CadenceCache
  /** True if another store keeps the secrets: then no create or edit can check that a secret exists. */
  readonly areSecretsElsewhere: boolean
  /** For tenants without a minimum of their own. */
  readonly minimumSeconds: number
  readonly retentionMs: number
}

export function createContext(deps: SchedulerDeps, options: SchedulerOptions): SchedulerContext {
  const { db, clock = systemClock } = deps
  // Null means no limit. Only an absent option gets the default.
  const { maxSchedulesPerProject: perProject = PER_PROJECT_DEFAULT, maxSchedulesPerUser: perUser = PER_USER_DEFAULT } =
    options
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
    minimumSeconds: options.minimumSeconds ?? MINIMUM_SECONDS_DEFAULT,
    retentionMs: checkedRetentionMs(options.retentionDays),
  }
}

/** One transaction that starts with the rules for the caller's inputs. Reading them costs no round trip: `begin` carries it. */
export async function transactWithRules<Result>(
  context: SchedulerContext,
  caller: Caller,
  work: (tx: Tx, rules: InputRules) => Promise<Result>,
): Promise<Result> {
  return context.transact(
    caller,
    (tx, read) => work(tx, rulesOf(context, toTenantRules(read))),
    tenantRulesText(context.clock.databaseNow()),
  )
}

/** The rules for a caller's inputs: the tenant's own, or else the installation's. */
export async function readRules(context: SchedulerContext, tx: Tx, { tenantId }: Caller): Promise<InputRules> {
  return rulesOf(context, await readTenantRules(tx, { tenantId, now: context.clock.databaseNow() }))
}

function rulesOf(
  { targets, minimumSeconds, cadences, areSecretsElsewhere }: SchedulerContext,
  rules: TenantRules,
): InputRules {
  return {
    targets,
    cadences,
    areSecretsElsewhere,
    now: rules.now,
    minimumSeconds: rules.minimumSeconds ?? minimumSeconds,
    limits: { allowedHosts: rules.allowedHosts },
  }
}

/** The fields of every event about a change of a schedule. */
export function changeEvent(
  caller: Caller,
  scheduleId: string,
): { scheduleId: string; actor: string } & Pick<Caller, 'tenantId' | 'projectId'> {
  const { tenantId, projectId, subject } = caller
  return { tenantId, projectId, scheduleId, actor: subject }
}

/**
 * Writes a schedule with its grant. The foreign key decides whether the grant exists in this project: it may be deleted at any time.
 * @throws CarillonError `invalid_input` if it does not
 */
export async function refuseUnknownGrant(write: Promise<void>): Promise<void> {
  try {
    await write
  } catch (error) {
    if (sqlStateOf(error) !== SQLSTATE.foreignKeyViolation) throw error
    throw unknownGrant()
  }
}
