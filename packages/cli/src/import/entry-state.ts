import type { Schedule } from '@carillon/api'

import type { Cli } from '../cli.ts'
import { connect } from '../connection.ts'
import { patiently } from '../patiently.ts'
import type { ImportEntry } from './import-entry.ts'

type State = Pick<Schedule, 'state' | 'skippedSlots'>

interface Lacking {
  /** The reason to pause it for; null if it is not to be paused, or is. */
  readonly pauseFor: string | null
  readonly slots: readonly string[]
}

/** What an entry says about its schedule that is done only after it is made, and is not done yet. */
export function lackingState({ pausedReason, skippedSlots }: ImportEntry, schedule: State, now: number): Lacking {
  const ahead = skippedSlots.map((slot) => new Date(slot)).filter((slot) => slot.getTime() > now)
  return {
    pauseFor: schedule.state === 'active' ? pausedReason : null,
    slots: ahead.map((slot) => slot.toISOString()).filter((slot) => !schedule.skippedSlots.includes(slot)),
  }
}

/** Pauses first, for until then it comes due. Broken off anywhere, it can be done again: see `isUntouched`. */
export async function applyState(cli: Cli, entry: ImportEntry, schedule: Schedule): Promise<void> {
  const client = connect(cli)
  const { id } = schedule
  const { pauseFor, slots } = lackingState(entry, schedule, cli.clock.now())
  if (pauseFor !== null) await patiently(cli, () => client.schedules.pause(id, { reason: pauseFor }))
  for (const slot of slots) await patiently(cli, () => client.schedules.skip(id, slot))
}

/** Whether nothing was done to a schedule but what importing the entry does: what somebody did since is not undone. */
export async function isUntouched(cli: Cli, { pausedReason }: ImportEntry, id: string): Promise<boolean> {
  const { items } = await patiently(cli, () => connect(cli).schedules.history(id))
  return items.every(
    ({ change, reason }) =>
      change === 'created' || change === 'slot_skipped' || (change === 'paused' && reason === pausedReason),
  )
}
