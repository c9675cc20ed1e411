import { SYSTEM_SUBJECT } from '@carillon/api'

import type { Tx } from '../db/database.ts'
import { notifyCancel } from '../db/notify.ts'
import type { SupersededRun } from '../policy/overlap.ts'
import { endWaitingRuns, requestCancel } from './store/open-runs.ts'

export {
  endWaitingRuns,
  findCancelRequests,
  findWaitFacts,
  endTurnWait,
  requestCancel,
  requireLockedSettlement,
  skipWaitingSlots,
} from './store/open-runs.ts'
export type { EndedRun, WaitFacts } from './store/open-runs.ts'

/** The open runs that new runs of a schedule replace. */
interface ReplacedRuns {
  /** Waiting runs that end now. */
  readonly supersede: readonly SupersededRun[]
  /** Ids of running runs whose targets are asked to stop. */
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
  if (cancel.length > 0) {
    await notifyCancel(tx, { runIds: await requestCancel(tx, { runIds: cancel, actor: SYSTEM_SUBJECT, now }) })
  }
}
