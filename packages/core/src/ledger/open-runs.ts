import { SYSTEM_SUBJECT } from '@carillon/api'

import type { Tx } from '../db/database.ts'
import { notifyCancel, notifyDue } from '../db/notify.ts'
import type { SupersededRun } from '../policy/overlap.ts'
import { endWaitingRuns, requestCancel } from './store/open-runs.ts'

export {
  endWaitingRuns,
  findCancelRequests,
  findSettleFacts,
  endTurnWait,
  lockRuns,
  requireLockedSettlement,
  skipWaitingSlots,
} from './store/open-runs.ts'
export type { EndedRun, SettleFacts } from './store/open-runs.ts'

/** The open runs that new runs of a schedule replace. */
interface ReplacedRuns {
  /** Waiting runs that end now. */
  readonly supersede: readonly SupersededRun[]
  /** Ids of running and detached runs whose targets are asked to stop. */
  readonly cancel: readonly string[]
}

/**
 * Ends the waiting runs that new runs supersede, and requests the cancellation of the running runs that they replace. `now` is null in
 * production: Postgres' clock decides.
 */
export async function endOpenRuns(tx: Tx, replaced: readonly ReplacedRuns[], now: Date | null): Promise<void> {
  const runIds = replaced.flatMap(({ supersede }) => supersede.map(({ id }) => id))
  if (runIds.length > 0) await endWaitingRuns(tx, { runIds, end: 'superseded', now })
  const cancel = replaced.flatMap((plan) => plan.cancel)
  if (cancel.length > 0) await cancelRuns(tx, { runIds: cancel, actor: SYSTEM_SUBJECT, now })
}

/**
 * Asks the workers of running runs to abort the calls, and lets the pipeline end detached runs at once. Call with the schedules' rows
 * locked.
 * @returns how many runs had no such request before
 */
export async function cancelRuns(
  tx: Tx,
  p: { readonly runIds: readonly string[]; readonly actor: string; readonly now: Date | null },
): Promise<number> {
  const requested = await requestCancel(tx, p)
  const held = requested.filter(({ lane }) => lane === null)
  if (held.length > 0) await notifyCancel(tx, { runIds: held.map(({ id }) => id) })
  await notifyDue(tx, { lanes: requested.flatMap(({ lane }) => lane ?? []) })
  return requested.length
}
