import { SLOT_COUNT } from '@carillon/api'
import { Option, type Command } from 'commander'

import { dropUndefined, moment, wholeNumber } from '../options/option-values.ts'
import { formatLocal, formatRelative } from '../output/format-time.ts'
import { zoneOf } from '../output/schedule-view.ts'
import { tableLines } from '../output/table.ts'
import { usageError } from '../process/cli-error.ts'
import { connect } from '../service/connect.ts'
import { getSchedule } from '../service/schedules.ts'
import { examples, type Define } from './define.ts'

interface SlotsOptions {
  readonly from?: string
  readonly to?: string
  readonly limit?: number
}

export function addSlotsCommand(schedules: Command, define: Define): void {
  const count = `number of slots, ${SLOT_COUNT.min} to ${SLOT_COUNT.max} (default: ${SLOT_COUNT.default})`
  const slots = schedules
    .command('slots')
    .description('list the future slots of a schedule')
    .argument('<schedule>', 'id or exact name')
    .addOption(new Option('--from <time>', 'first slot at or after this time (default: now)').argParser(moment))
    .addOption(new Option('--to <time>', 'only slots before this time').argParser(moment))
    .addOption(new Option('--limit <count>', count).argParser(wholeNumber))
  examples(slots, 'carillon schedules slots Digest --limit 5')
  define<SlotsOptions>(slots, async ({ cli, args, options, show, note }) => {
    const client = connect(cli)
    const schedule = await getSchedule(client, args[0] ?? '')
    const { from, to, limit } = options
    const page = await client.schedules.slots(schedule.id, dropUndefined({ from, to, limit }))
    const now = cli.clock.now()
    show(page, () =>
      tableLines(
        cli.terminal,
        [
          { title: 'LOCAL', of: ({ scheduledFor }) => formatLocal(scheduledFor, zoneOf(schedule)) },
          { title: 'UTC', of: ({ scheduledFor }) => scheduledFor },
          { title: '', of: ({ scheduledFor }) => formatRelative(scheduledFor, now) },
          { title: '', of: ({ isSkipped }) => (isSkipped ? 'skipped' : ''), style: () => 'yellow' },
        ],
        page.items,
      ),
    )
    if (page.items.length === 0) note('no future slots')
  })
}

export function addSkipCommand(schedules: Command, define: Define): void {
  const skip = schedules
    .command('skip')
    .description('skip one future slot')
    .argument('<schedule>', 'id or exact name')
    .argument('<slot>', 'time of the slot, such as 2026-12-24T18:00:00Z, or next')
  examples(skip, 'carillon schedules skip Digest next', 'carillon schedules skip Digest 2026-12-24T18:00:00Z')
  define(skip, async ({ cli, args, show }) => {
    const [schedule = '', slot = ''] = args
    const client = connect(cli)
    const { id, name, nextSlotAt } = await getSchedule(client, schedule)
    const scheduledFor = slot === 'next' ? nextSlotAt : moment(slot)
    if (scheduledFor === null) throw usageError(`expected a future slot, got next: "${name}" has none`)
    const changed = await client.schedules.skip(id, scheduledFor)
    show(changed, () => [`${name} will skip the slot ${formatLocal(scheduledFor, zoneOf(changed))}`])
  })
}

export function addRestoreCommand(schedules: Command, define: Define): void {
  const restore = schedules
    .command('restore')
    .description('undo the skip of a slot')
    .argument('<schedule>', 'id or exact name')
    .argument('<slot>', 'time of the slot, such as 2026-12-24T18:00:00Z')
  examples(restore, 'carillon schedules restore Digest 2026-12-24T18:00:00Z')
  define(restore, async ({ cli, args, show }) => {
    const [schedule = '', slot = ''] = args
    const client = connect(cli)
    const { id, name } = await getSchedule(client, schedule)
    const scheduledFor = moment(slot)
    const changed = await client.schedules.restore(id, scheduledFor)
    show(changed, () => [`${name} will run the slot ${formatLocal(scheduledFor, zoneOf(changed))}`])
  })
}
