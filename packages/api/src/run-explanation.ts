import type { Run } from './schemas/run.ts'

const SKIPPED: Readonly<Record<NonNullable<Run['reason']>, string>> = {
  overlap: 'Did not run: the run before it was still under way, and the policy forbids two at once.',
  missed: 'Did not run: no worker could begin it within its starting deadline.',
  paused: 'Did not run: the schedule was paused.',
  grant_expired: 'Did not run: the grant of the schedule had expired.',
  grant_revoked: 'Did not run: the grant of the schedule had been revoked.',
  grant_scope: 'Did not run: the grant of the schedule does not cover its target.',
  access_lost: 'Did not run: the owner of the schedule has lost access to the project.',
  excluded: 'Did not run: somebody asked to skip this slot.',
  superseded: 'Did not run: a later slot, an edit or a deletion came before its turn.',
}

/** Why a run is as it is, in a sentence. */
export function explainRun({
  state,
  reason,
  attemptCount,
  cancelRequestedAt,
}: Pick<Run, 'state' | 'reason' | 'attemptCount'> & { readonly cancelRequestedAt: unknown }): string {
  const attempts = attemptCount === 1 ? '1 attempt' : `${attemptCount} attempts`
  switch (state) {
    case 'pending':
      return 'Waits for its turn.'
    case 'running':
      return cancelRequestedAt === null ? 'Is under way.' : 'Is under way, and was asked to stop.'
    case 'retrying':
      return `Failed ${attemptCount === 1 ? 'once' : `${attemptCount} times`}, and will be tried again.`
    case 'succeeded':
      return attemptCount === 1 ? 'Ran.' : `Ran, after ${attempts}.`
    case 'failed':
      return reason === 'superseded'
        ? `Failed after ${attempts}: it still waited to be tried again when its next slot began.`
        : `Failed after ${attempts}.`
    case 'cancelled':
      return 'Was cancelled.'
    case 'skipped':
      return reason === null ? 'Did not run.' : SKIPPED[reason]
  }
}
