import type { Client, ScheduleInput } from '@carillon/api'

import type { Cli } from '../cli.ts'
import { patiently } from '../patiently.ts'
import type { ImportEntry } from './import-entry.ts'

/** Slots are taken out only of a schedule that is made: what is none is found before. Answers the first, or nothing. */
export async function findNoSlot(
  cli: Cli,
  client: Client,
  { skippedSlots }: ImportEntry,
  cadence: ScheduleInput['cadence'],
): Promise<string | undefined> {
  for (const written of skippedSlots) {
    const slot = Date.parse(written)
    if (slot <= cli.clock.now()) continue
    const from = new Date(slot - 1).toISOString()
    const { slots } = await patiently(cli, () => client.cadence.preview({ cadence, from, count: 1 }))
    if (slots[0]?.scheduledFor !== new Date(slot).toISOString()) return written
  }
  return undefined
}
