import type { Run } from './schemas/run.ts'

type Refusal = 'grant_expired' | 'grant_revoked' | 'grant_scope' | 'access_lost'

/** Why a run may not act, and what gives it its right back. */
const REFUSED: Readonly<Record<Refusal, string>> = {
  grant_expired: 'the grant of the schedule had expired; renew it, or give the schedule another.',
  grant_revoked: 'the grant of the schedule had been revoked; give the schedule another.',
  grant_scope: 'the grant of the schedule does not cover its target; give the schedule one that does.',
  access_lost: 'the owner of the schedule has lost access to the project; put the owner back as a member.',
}

const SKIPPED: Readonly<Record<NonNullable<Run['reason']>, string>> = {
  overlap: 'Did not run: the run before it was still under way, and the policy forbids two at once.',
  missed: 'Did not run: no worker could begin it within its starting deadline.',
  paused: 'Did not run: the schedule was paused.',
  grant_expired: `Did not run: ${REFUSED.grant_expired}`,
  grant_revoked: `Did not run: ${REFUSED.grant_revoked}`,
  grant_scope: `Did not run: ${REFUSED.grant_scope}`,
  access_lost: `Did not run: ${REFUSED.access_lost}`,
  excluded: 'Did not run: somebody asked to skip this slot.',
  superseded: 'Did not run: a later slot, an edit or a deletion came before its turn.',
}

const WAITS: Readonly<Record<NonNullable<Run['waitsFor']>, string>> = {
  turn: 'waits for its turn: another run of the schedule must end first.',
  worker: 'waits for a worker with room.',
  retry: 'will be tried again after a pause.',
  deferred: 'waits, because its target asked to be called later.',
  completion: 'waits to be completed from elsewhere.',
}

/** Why a run is as it is, in a sentence. */
export function explainRun({
  state,
  reason,
  waitsFor,
  attemptCount,
  cancelRequestedAt,
}: Pick<Run, 'state' | 'reason' | 'waitsFor' | 'attemptCount'> & { readonly cancelRequestedAt: unknown }): string {
  const waits = WAITS[waitsFor ?? 'worker']
  const attempts = attemptCount === 1 ? '1 attempt' : `${attemptCount} attempts`
  switch (state) {
    case 'pending':
      return `It ${waits}`
    case 'running':
      return cancelRequestedAt === null ? 'Is under way.' : 'Is under way, and was asked to stop.'
    case 'retrying':
      return `Did not succeed in ${attempts}, and ${waits}`
    case 'succeeded':
      return attemptCount === 1 ? 'Ran.' : `Ran, after ${attempts}.`
    case 'failed':
      return `Failed after ${attempts}${failureText(reason)}`
    case 'cancelled':
      return 'Was cancelled.'
    case 'skipped':
      return reason === null ? 'Did not run.' : SKIPPED[reason]
  }
}

/** A run that was tried, and was then refused another attempt, has failed by that. */
function failureText(reason: Run['reason']): string {
  if (reason === 'superseded') return ': it still waited to be tried again when its next slot began.'
  return isRefusal(reason) ? `: ${REFUSED[reason]}` : '.'
}

function isRefusal(reason: Run['reason']): reason is Refusal {
  return reason !== null && Object.hasOwn(REFUSED, reason)
}
