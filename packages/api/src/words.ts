/*
 * Every closed list of the contract: the words that the API, the database, the core and the CLI share. A list stands here
 * and nowhere else. A word that is shown to people has its sentence beside it.
 */

/**
 * The states of a run: `run_state` in the database.
 *
 * ```
 *                ┌──────────► skipped                       (never tried; its reason says why)
 *  begin ──► pending ◄─► running ──► succeeded
 *    │           │        │ ▲ ├────► failed
 *    │           │        ▼ │ └────► cancelled
 *    │           │      retrying ──► failed                 (superseded by the next slot)
 *    │           └─────────┴───────► cancelled
 *    ├──► running                                           (nothing to wait for: the common case)
 *    └──► skipped                                           (overlap, missed, excluded, no permission)
 *
 *  running ──► detached ──► succeeded, failed, cancelled, or retrying
 * ```
 *
 * A detached run is held by no worker: its target passed the work on, and the run waits to be completed from elsewhere.
 * A waiting run is `pending` if no attempt was made and `retrying` if one was. So a run that a worker hands back untried is
 * pending again, and a run whose worker died is retrying. A run that was never tried ends as skipped, not failed; a run that
 * was tried never ends as skipped. A terminal state never changes.
 */
export const RUN_STATES = [
  'pending',
  'running',
  'detached',
  'retrying',
  'succeeded',
  'failed',
  'cancelled',
  'skipped',
] as const

export type RunState = (typeof RUN_STATES)[number]

const IS_OVER: Readonly<Record<RunState, boolean>> = {
  pending: false,
  running: false,
  detached: false,
  retrying: false,
  succeeded: true,
  failed: true,
  cancelled: true,
  skipped: true,
}

/** False for open runs: a worker holds them, or they wait. */
export function isRunOver({ state }: { readonly state: RunState }): boolean {
  return IS_OVER[state]
}

/** What started a run: a slot of its cadence, or a request to run the schedule now. */
export const RUN_TRIGGERS = ['schedule', 'manual'] as const

export type RunTrigger = (typeof RUN_TRIGGERS)[number]

/** How an attempt ended. `malformed`: the target broke its contract. `lost`: its worker died. `timed_out`: its deadline passed. */
export const ATTEMPT_OUTCOMES = ['succeeded', 'failed', 'cancelled', 'malformed', 'lost', 'timed_out'] as const

export type AttemptOutcome = (typeof ATTEMPT_OUTCOMES)[number]

/** What a waiting run waits for (`run_wait` in the database), as the end of a sentence about the run. */
const RUN_WAIT_TEXTS = {
  turn: 'waits for its turn: another run of the schedule must end first',
  worker: 'waits for a worker with room',
  retry: 'will be tried again after a pause',
  deferred: 'waits, because its target asked to be called later',
  completion: 'waits to be completed from elsewhere',
} as const

export type RunWait = keyof typeof RUN_WAIT_TEXTS

export const RUN_WAITS = wordsOf(RUN_WAIT_TEXTS)

/**
 * The kinds of transcript lines that Carillon itself writes. `truncated`: the transcript has reached its limit and ends here. `dropped`:
 * lines are missing here, because the worker had too many to keep. `refused`: the target recorded something that is no entry.
 */
export const TRANSCRIPT_OWN_KINDS = ['truncated', 'dropped', 'refused'] as const

export type TranscriptOwnKind = (typeof TRANSCRIPT_OWN_KINDS)[number]

/** Reasons for which a run has no permission to act, with what restores the permission. */
const REFUSAL_TEXTS = {
  grant_expired: 'the grant of the schedule had expired; renew it, or give the schedule another',
  grant_revoked: 'the grant of the schedule had been revoked; give the schedule another',
  grant_scope: 'the grant of the schedule does not cover its target; give the schedule one that does',
  access_lost: 'the owner of the schedule has lost access to the project; put the owner back as a member',
} as const

/** Why a slot did not run (`run_reason` in the database). `superseded` also ends a run that waits for its retry. */
const RUN_REASON_TEXTS = {
  overlap: 'the run before it was still under way, and the policy forbids two at once',
  missed: 'no worker could begin it within its starting deadline',
  paused: 'the schedule was paused',
  ...REFUSAL_TEXTS,
  excluded: 'a caller skipped this slot',
  superseded: 'a later slot, an edit or a deletion came before its turn',
} as const

/** Why a run has no permission to act. Such a run counts as a failure of its schedule. */
export type Refusal = keyof typeof REFUSAL_TEXTS

export type RunReason = keyof typeof RUN_REASON_TEXTS

export const REFUSALS = wordsOf(REFUSAL_TEXTS)

export const RUN_REASONS = wordsOf(RUN_REASON_TEXTS)

/** The states that a schedule in an answer can have. */
export const SCHEDULE_STATES = ['active', 'paused', 'completed'] as const

/** The states of a schedule in the database (`schedule_state`). */
export const STORED_SCHEDULE_STATES = [...SCHEDULE_STATES, 'deleted'] as const

export type ScheduleState = (typeof STORED_SCHEDULE_STATES)[number]

/**
 * What happens to a slot that begins while runs of its schedule are open: the slot is skipped, waits for them, runs beside
 * them, or replaces them.
 */
export const OVERLAP_POLICIES = ['forbid', 'queue', 'allow', 'replace'] as const

export type OverlapPolicy = (typeof OVERLAP_POLICIES)[number]

export const OVERLAP_DEFAULT = 'forbid' satisfies OverlapPolicy

/** What happens to slots that no worker began in time: all are skipped as missed, or the most recent one runs late. */
export const MISSED_POLICIES = ['skip', 'run_once'] as const

export type MissedPolicy = (typeof MISSED_POLICIES)[number]

/** What the history of a schedule records (`schedule_change` in the database), as the end of a sentence about the schedule. */
const SCHEDULE_CHANGE_TEXTS = {
  created: 'it was created',
  edited: 'an edit gave it a new revision',
  paused: 'it was paused',
  resumed: 'it was resumed',
  completed: 'it has no further slot',
  deleted: 'it was deleted',
  slot_skipped: 'a future slot was skipped',
  slot_restored: 'a skipped slot was brought back',
  grant_expiring: 'its grant expires soon',
  grant_revoked: 'its own grant was revoked',
  grant_renewed: 'its own grant got another expiry',
  run_requested: 'a caller requested a run of it now',
  run_cancelled: 'a caller cancelled one of its runs',
} as const

export type ScheduleChangeKind = keyof typeof SCHEDULE_CHANGE_TEXTS

export const SCHEDULE_CHANGES = wordsOf(SCHEDULE_CHANGE_TEXTS)

/** Changes of one run. They change no slot of the schedule and nothing else about it. */
const RUN_CHANGES = ['run_requested', 'run_cancelled'] as const satisfies readonly ScheduleChangeKind[]

export type RunChangeKind = (typeof RUN_CHANGES)[number]

export function isRunChange(change: ScheduleChangeKind): change is RunChangeKind {
  return RUN_CHANGES.some((other) => other === change)
}

/** Says what each change of a schedule means, for documents. */
export const SCHEDULE_CHANGES_EXPLAINED = `What happened to the schedule: ${SCHEDULE_CHANGES.map(
  (change) => `${SCHEDULE_CHANGE_TEXTS[change]} (\`${change}\`)`,
).join(', ')}.`

/** What a key, a token or a member may do (`role` in the database): a member reads, an admin also writes. */
export const ROLES = ['member', 'admin'] as const

export type Role = (typeof ROLES)[number]

/** What a reader should know about a grant; `expires_soon` begins `GRANT_WARNING_MS` before the grant expires. */
export const GRANT_WARNINGS = ['expires_soon', 'expired', 'revoked'] as const

/** Inconsistencies that an audit reports. */
export const FINDING_KINDS = [
  'slot_lost',
  'slot_unknown',
  'schedule_past_due',
  'run_without_lease',
  'run_stuck',
  'attempt_missing',
  'revision_missing',
  'run_contradicted',
  'count_wrong',
  'module_check',
] as const

export type FindingKind = (typeof FINDING_KINDS)[number]

export const HTTP_METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const

export type HttpMethod = (typeof HTTP_METHODS)[number]

export const HTTP_METHOD_DEFAULT = 'POST' satisfies HttpMethod

/** What ends a run with an HTTP target: the response to the request, or a callback of the called service. */
export const HTTP_COMPLETIONS = ['response', 'callback'] as const

/** What happens if the deadline of a callback passes: the retry policy decides, or the run fails. */
export const DEADLINE_POLICIES = ['retry', 'fail'] as const

/** How messages and documents name the admin key, which is the API key of the installation itself. */
export const ADMIN_KEY_PHRASE = 'the admin key'

/** The subject of the installation: admin of its own project. No key, member or owner may have this name. */
export const INSTALLATION_SUBJECT = 'service:installation'

/** The subject of what Carillon does by itself, such as an auto-pause. No caller may name a subject that begins with `system:`. */
export const SYSTEM_SUBJECT = 'system:carillon'

interface ExplainedRun {
  readonly state: RunState
  /** One of core's reasons, or one that a module declares. */
  readonly reason: string | null
  readonly waitsFor: RunWait | null
  readonly attemptCount: number
  /** Null unless a cancellation was requested. */
  readonly cancelRequestedAt: unknown
}

/** The reasons that modules declare, each with its sentence. */
export type ModuleReasons = Readonly<Record<string, string>>

const NO_REASONS: ModuleReasons = {}

/**
 * Says in one sentence why a run is in its state.
 * @param reasons those of modules. A reason that is not among them, such as that of a module which is gone, is shown as its word
 */
export function explainRun(
  { state, reason, waitsFor, attemptCount, cancelRequestedAt }: ExplainedRun,
  reasons = NO_REASONS,
): string {
  const wait = RUN_WAIT_TEXTS[waitsFor ?? 'worker']
  const attempts = attemptCount === 1 ? '1 attempt' : `${attemptCount} attempts`
  switch (state) {
    case 'pending':
      return `The run ${wait}.`
    case 'running':
      return `The run is under way${cancelRequestedAt === null ? '' : ', and was asked to stop'}.`
    case 'detached':
      return `The run was passed on and ${wait}${cancelRequestedAt === null ? '' : '; it was asked to stop'}.`
    case 'retrying':
      return `The run did not succeed in ${attempts}; it ${wait}.`
    case 'succeeded':
      return `The run succeeded${attemptCount === 1 ? '' : ` after ${attempts}`}.`
    case 'failed':
      return `The run failed after ${attempts}${failureText(reason, reasons)}.`
    case 'cancelled':
      return 'The run was cancelled.'
    case 'skipped':
      return `The run did not start${reason === null ? '' : `: ${reasonText(reason, reasons)}`}.`
  }
}

/** Why a run that was tried has failed, if its retry was then superseded or refused. */
function failureText(reason: string | null, reasons: ModuleReasons): string {
  if (reason === 'superseded') return ': it still waited to be tried again when its next slot began'
  return reason === null ? '' : `: ${reasonText(reason, reasons)}`
}

function reasonText(reason: string, reasons: ModuleReasons): string {
  if (Object.hasOwn(RUN_REASON_TEXTS, reason)) return RUN_REASON_TEXTS[reason as RunReason]
  return (Object.hasOwn(reasons, reason) ? reasons[reason] : undefined) ?? reason
}

export function isRefusal(reason: string | null): reason is Refusal {
  return reason !== null && Object.hasOwn(REFUSAL_TEXTS, reason)
}

/** TypeScript types the keys of any object as `string`; the keys of these tables are the words. */
function wordsOf<Word extends string>(texts: Readonly<Record<Word, string>>): readonly Word[] {
  return Object.keys(texts) as Word[]
}
