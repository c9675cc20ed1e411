import type { Command } from 'commander'
import { Option } from 'commander'

import { connect } from '../connection.ts'
import { examples, type Define } from '../define.ts'
import { findSchedule } from '../find-schedule.ts'
import { formatLocal } from '../output/format-time.ts'
import { scheduleFields, scheduleTable, zoneOf } from '../output/schedule-view.ts'
import { tableLines } from '../output/table.ts'
import { addPageOptions, notePage, pageQuery, type PageOptions } from '../page-options.ts'

interface ListOptions extends PageOptions {
  readonly state?: 'active' | 'paused' | 'completed'
  readonly kind?: string
  readonly query?: string
}

export function addReads(schedules: Command, define: Define): void {
  addList(schedules, define)
  const get = schedules.command('get').description('show a schedule').argument('<schedule>', 'its id or exact name')
  examples(get, 'carillon schedules get "Morning digest"')
  define(get, async ({ cli, args, show }) => {
    const schedule = await findSchedule(connect(cli), args[0] ?? '')
    show(schedule, () => scheduleFields(cli.terminal, schedule, cli.clock.now()))
  })
  addHistory(schedules, define)
}

function addList(schedules: Command, define: Define): void {
  const list = schedules
    .command('list')
    .description('list schedules, the newest first')
    .addOption(new Option('--state <state>', 'only those').choices(['active', 'paused', 'completed']))
    .option('--kind <kind>', 'only those with a target of this kind')
    .option('--query <text>', 'only those whose name contains it')
  addPageOptions(list)
  examples(list, 'carillon schedules list --state paused', 'carillon schedules list --query digest --json')
  define<ListOptions>(list, async ({ cli, options, show, note }) => {
    const { state, kind, query } = options
    const page = await connect(cli).schedules.list({
      ...(state === undefined ? {} : { state }),
      ...(kind === undefined ? {} : { targetKind: kind }),
      ...(query === undefined ? {} : { q: query }),
      ...pageQuery(options),
    })
    show(page, () => scheduleTable(cli.terminal, page.items, cli.clock.now()))
    notePage(page, note, 'no schedules: `carillon schedules create --help` shows how to make one')
  })
}

function addHistory(schedules: Command, define: Define): void {
  const history = schedules
    .command('history')
    .description('show who did what to a schedule')
    .argument('<schedule>', 'its id or exact name')
  examples(history, 'carillon schedules history "Morning digest"')
  define(history, async ({ cli, args, show }) => {
    const client = connect(cli)
    const schedule = await findSchedule(client, args[0] ?? '')
    const changes = await client.schedules.history(schedule.id)
    const zone = zoneOf(schedule)
    show(changes, () =>
      tableLines(
        cli.terminal,
        [
          { title: 'WHEN', of: ({ changedAt }) => formatLocal(changedAt, zone) },
          { title: 'WHAT', of: ({ change }) => change },
          { title: 'WHO', of: ({ actor }) => actor, shrinksTo: 12 },
          { title: 'REVISION', of: ({ revision }) => String(revision) },
          { title: 'NEXT SLOT', of: ({ nextSlotAt }) => (nextSlotAt === null ? '-' : formatLocal(nextSlotAt, zone)) },
          { title: 'WHY', of: ({ reason }) => reason ?? '', shrinksTo: 12 },
        ],
        changes.items,
      ),
    )
  })
}
