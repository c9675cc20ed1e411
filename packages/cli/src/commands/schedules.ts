import { PAGE_SIZE, SCHEDULE_STATES } from '@carillon/api'
import { Option, type Command } from 'commander'

import { dropUndefined, wholeNumber } from '../options/option-values.ts'
import { addPageOptions, notePage, pageQuery, type PageOptions } from '../options/page-options.ts'
import { formatLocal } from '../output/format-time.ts'
import { scheduleFields, scheduleTable, zoneOf } from '../output/schedule-view.ts'
import { tableLines } from '../output/table.ts'
import { connect } from '../service/connect.ts'
import { getSchedule, listUpTo } from '../service/schedules.ts'
import { examples, type Define } from './define.ts'
import { addDeleteCommand, addEditCommand, addPauseCommand, addResumeCommand } from './schedule-changes.ts'
import { addCreateCommand, addPreviewCommand } from './schedule-create.ts'
import { addRunCommand, addRunsCommand } from './schedule-runs.ts'
import { addRestoreCommand, addSkipCommand, addSlotsCommand } from './schedule-slots.ts'

export function addSchedulesCommand(program: Command, define: Define): void {
  const schedules = program.command('schedules').description('create, show and change schedules')
  addCreateCommand(schedules, define)
  addList(schedules, define)
  addGet(schedules, define)
  addHistory(schedules, define)
  addEditCommand(schedules, define)
  addPauseCommand(schedules, define)
  addResumeCommand(schedules, define)
  addDeleteCommand(schedules, define)
  addRunCommand(schedules, define)
  addRunsCommand(schedules, define)
  addSlotsCommand(schedules, define)
  addSkipCommand(schedules, define)
  addRestoreCommand(schedules, define)
  addPreviewCommand(schedules, define)
}

interface ListOptions extends PageOptions {
  readonly state?: (typeof SCHEDULE_STATES)[number]
  readonly kind?: string
  readonly query?: string
}

function addList(schedules: Command, define: Define): void {
  const list = schedules
    .command('list')
    .description('list schedules, newest first')
    .addOption(new Option('--state <state>', 'only schedules in this state').choices(SCHEDULE_STATES))
    .option('--kind <kind>', 'only schedules with this kind of target')
    .option('--query <text>', 'only schedules whose name contains this text')
  addPageOptions(list)
  examples(list, 'carillon schedules list --state paused', 'carillon schedules list --query digest --json')
  define<ListOptions>(list, async ({ cli, options, show, note }) => {
    const { state, kind, query } = options
    const page = await connect(cli).schedules.list({
      ...dropUndefined({ state, targetKind: kind, q: query }),
      ...pageQuery(options),
    })
    show(page, () => scheduleTable(cli.terminal, page.items, cli.clock.now()))
    notePage(page, note, 'no schedules: see `carillon schedules create --help`')
  })
}

function addGet(schedules: Command, define: Define): void {
  const get = schedules.command('get').description('show a schedule').argument('<schedule>', 'id or exact name')
  examples(get, 'carillon schedules get "Morning digest"')
  define(get, async ({ cli, args, show }) => {
    const schedule = await getSchedule(connect(cli), args[0] ?? '')
    show(schedule, () => scheduleFields(cli.terminal, schedule, cli.clock.now()))
  })
}

function addHistory(schedules: Command, define: Define): void {
  const history = schedules
    .command('history')
    .description('show the changes of a schedule, its requested and cancelled runs, and their actors, the latest first')
    .argument('<schedule>', 'id or exact name')
    .addOption(new Option('--limit <count>', `how many changes (default: ${PAGE_SIZE.default})`).argParser(wholeNumber))
    .option('--cursor <cursor>', 'show the changes after this cursor (the nextCursor of the last answer)')
  examples(history, 'carillon schedules history "Morning digest"', 'carillon schedules history Digest --limit 1000')
  define<PageOptions>(history, async ({ cli, args, options, show, note }) => {
    const client = connect(cli)
    const schedule = await getSchedule(client, args[0] ?? '')
    const { limit = PAGE_SIZE.default, cursor } = options
    const changes = await listUpTo((page) => client.schedules.history(schedule.id, page), limit, cursor)
    const zone = zoneOf(schedule)
    show(changes, () =>
      tableLines(
        cli.terminal,
        [
          { title: 'WHEN', of: ({ changedAt }) => formatLocal(changedAt, zone) },
          { title: 'CHANGE', of: ({ change }) => change },
          { title: 'BY', of: ({ actor }) => actor, shrinksTo: 12 },
          { title: 'REVISION', of: ({ revision }) => String(revision) },
          { title: 'RUN', of: ({ scheduledFor }) => (scheduledFor === null ? '-' : formatLocal(scheduledFor, zone)) },
          { title: 'NEXT SLOT', of: ({ nextSlotAt }) => (nextSlotAt === null ? '-' : formatLocal(nextSlotAt, zone)) },
          { title: 'REASON', of: ({ reason }) => reason ?? '', shrinksTo: 12 },
        ],
        changes.items,
      ),
    )
    notePage(changes, note, 'no changes')
  })
}
