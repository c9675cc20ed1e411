import { Option, type Command } from 'commander'

import { usageError } from '../cli-error.ts'
import { connect } from '../connection.ts'
import { examples, type Define, type Invocation } from '../define.ts'
import { findSchedule } from '../find-schedule.ts'
import { moment, wholeNumber } from '../option-values.ts'
import { formatLocal, formatRelative } from '../output/format-time.ts'
import { zoneOf } from '../output/schedule-view.ts'
import { tableLines } from '../output/table.ts'

interface SlotsOptions {
  readonly from?: string
  readonly to?: string
  readonly limit?: number
}

export function addSlots(schedules: Command, define: Define): void {
  const slots = schedules
    .command('slots')
    .description('list the slots ahead of a schedule')
    .argument('<schedule>', 'its id or exact name')
    .addOption(new Option('--from <instant>', 'not before (now)').argParser(moment))
    .addOption(new Option('--to <instant>', 'before').argParser(moment))
    .addOption(new Option('--limit <count>', 'so many at most, 1 to 1000 (50)').argParser(wholeNumber))
  examples(slots, 'carillon schedules slots Digest --limit 5')
  define<SlotsOptions>(slots, listSlots)

  const skip = schedules
    .command('skip')
    .description('take out one slot ahead')
    .argument('<schedule>', 'its id or exact name')
    .argument('<slot>', 'an instant such as 2026-12-24T18:00:00Z, or next')
  examples(skip, 'carillon schedules skip Digest next', 'carillon schedules skip Digest 2026-12-24T18:00:00Z')
  define(skip, (invocation) => changeSlot(invocation, 'skip'))

  const restore = schedules
    .command('restore')
    .description('take a skip back')
    .argument('<schedule>', 'its id or exact name')
    .argument('<slot>', 'an instant such as 2026-12-24T18:00:00Z')
  examples(restore, 'carillon schedules restore Digest 2026-12-24T18:00:00Z')
  define(restore, (invocation) => changeSlot(invocation, 'restore'))
}

async function listSlots({ cli, args, options, show, note }: Invocation<SlotsOptions>): Promise<void> {
  const client = connect(cli)
  const schedule = await findSchedule(client, args[0] ?? '')
  const { from, to, limit } = options
  const slots = await client.schedules.slots(schedule.id, {
    ...(from === undefined ? {} : { from }),
    ...(to === undefined ? {} : { to }),
    ...(limit === undefined ? {} : { limit }),
  })
  const now = cli.clock.now()
  show(slots, () =>
    tableLines(
      cli.terminal,
      [
        { title: 'LOCAL', of: ({ scheduledFor }) => formatLocal(scheduledFor, zoneOf(schedule)) },
        { title: 'UTC', of: ({ scheduledFor }) => scheduledFor },
        { title: '', of: ({ scheduledFor }) => formatRelative(scheduledFor, now) },
        { title: '', of: ({ isSkipped }) => (isSkipped ? 'skipped' : ''), style: () => 'yellow' },
      ],
      slots.items,
    ),
  )
  if (slots.items.length === 0) note('no slot lies ahead')
}

async function changeSlot({ cli, args, show }: Invocation<object>, change: 'skip' | 'restore'): Promise<void> {
  const [schedule = '', slot = ''] = args
  const client = connect(cli)
  const { id, name, nextSlotAt } = await findSchedule(client, schedule)
  const scheduledFor = change === 'skip' && slot === 'next' ? nextSlotAt : moment(slot)
  if (scheduledFor === null) throw usageError(`expected a slot ahead, got next: "${name}" has none`)
  const changed = await client.schedules[change](id, scheduledFor)
  const done = change === 'skip' ? 'will be skipped' : 'will run'
  show(changed, () => [`the slot ${formatLocal(scheduledFor, zoneOf(changed))} of ${name} ${done}`])
}
