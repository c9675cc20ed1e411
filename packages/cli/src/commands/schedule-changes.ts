import type { Client, Schedule } from '@carillon/api'
import type { Command } from 'commander'

import { confirm } from '../confirm.ts'
import { connect } from '../connection.ts'
import { examples, type Define, type Invocation } from '../define.ts'
import { findSchedule } from '../find-schedule.ts'
import { formatLocal, formatRelative } from '../output/format-time.ts'
import { zoneOf } from '../output/schedule-view.ts'

const REASON_DEFAULT = 'paused from the command line'

export function addChanges(schedules: Command, define: Define): void {
  const pause = schedules
    .command('pause')
    .description('pause a schedule: nothing begins until it is resumed')
    .argument('<schedule>', 'its id or exact name')
    .option('--reason <text>', 'why, for whoever finds it paused', REASON_DEFAULT)
  examples(pause, 'carillon schedules pause Digest --reason "the provider is down"')
  define<{ readonly reason: string }>(pause, async (invocation) => {
    const { reason } = invocation.options
    await change(invocation, (client, { id, revision }) => client.schedules.pause(id, { reason, revision }))
  })

  const resume = schedules
    .command('resume')
    .description('resume a schedule: goes on with the next slot ahead')
    .argument('<schedule>', 'its id or exact name')
  examples(resume, 'carillon schedules resume Digest')
  define(resume, async (invocation) => {
    await change(invocation, (client, { id, revision }) => client.schedules.resume(id, { revision }))
  })
  addDelete(schedules, define)
}

async function change(
  { cli, args, show }: Invocation<object>,
  act: (client: Client, schedule: Schedule) => Promise<Schedule>,
): Promise<void> {
  const client = connect(cli)
  const changed = await act(client, await findSchedule(client, args[0] ?? ''))
  show(changed, () => [stateLine(changed, cli.clock.now())])
}

function stateLine(schedule: Schedule, now: number): string {
  const { name, state, nextSlotAt } = schedule
  if (nextSlotAt === null) return `${name} is ${state}`
  return `${name} is ${state}, next ${formatLocal(nextSlotAt, zoneOf(schedule))} (${formatRelative(nextSlotAt, now)})`
}

function addDelete(schedules: Command, define: Define): void {
  const remove = schedules
    .command('delete')
    .description('delete a schedule; its runs stay in the ledger')
    .argument('<schedule>', 'its id or exact name')
    .option('--yes', 'do not ask')
  examples(remove, 'carillon schedules delete Digest', 'carillon schedules delete Digest --yes')
  define<{ readonly yes?: boolean }>(remove, async ({ cli, args, options, show }) => {
    const client = connect(cli)
    const { id, name, revision } = await findSchedule(client, args[0] ?? '')
    await confirm(cli, `Delete "${name}" (${id})?`, options.yes)
    await client.schedules.delete(id, { revision })
    show({ id, name, isDeleted: true }, () => [`${name} is deleted`])
  })
}
