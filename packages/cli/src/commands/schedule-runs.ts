import { isRunOver, type Schedule } from '@carillon/api'
import { Option, type Command } from 'commander'

import { durationMs } from '../options/option-values.ts'
import { addPageOptions, notePage, pageQuery, type PageOptions } from '../options/page-options.ts'
import { formatLocal, formatRelative } from '../output/format-time.ts'
import { runFields, runTable } from '../output/run-view.ts'
import { zoneOf } from '../output/schedule-view.ts'
import { connect } from '../service/connect.ts'
import { getSchedule } from '../service/schedules.ts'
import { exitForRun, waitForRun } from '../service/wait-for-run.ts'
import { examples, type Define } from './define.ts'

interface WaitOptions {
  readonly wait?: boolean
  readonly timeout?: number
}

function addTimeout(command: Command): void {
  command.addOption(new Option('--timeout <duration>', 'time limit of --wait (default: none)').argParser(durationMs))
}

export function addRunCommand(schedules: Command, define: Define): void {
  const run = schedules
    .command('run')
    .description('run a schedule now, in addition to its slots')
    .argument('<schedule>', 'id or exact name')
    .option('--wait', 'wait until the run is over')
  addTimeout(run)
  examples(run, 'carillon schedules run Digest', 'carillon schedules run Digest --wait --timeout 30s')
  define<WaitOptions>(run, async ({ cli, args, options, show, note }) => {
    const client = connect(cli)
    const schedule = await getSchedule(client, args[0] ?? '')
    const started = await client.schedules.run(schedule.id)
    if (options.wait !== true) {
      show(started, () => runFields(cli.terminal, started, zoneOf(schedule)))
      note(`see its result with \`carillon runs get ${started.id}\``)
      return 'ok'
    }
    note(`waiting for run ${started.id}…`)
    const { id } = await waitForRun(cli, {
      what: `run ${started.id}`,
      find: (within) => within.runs.get(started.id),
      matches: (each) => each.id === started.id,
      timeoutMs: options.timeout,
    })
    const ended = await client.runs.get(id)
    show(ended, () => runFields(cli.terminal, ended, zoneOf(schedule)))
    return exitForRun(ended)
  })
}

export function addRunsCommand(schedules: Command, define: Define): void {
  const runs = schedules
    .command('runs')
    .description('list the runs of a schedule, latest slot first')
    .argument('<schedule>', 'id or exact name')
    .option('--wait', 'wait until at least one run is over')
  addTimeout(runs)
  addPageOptions(runs)
  examples(runs, 'carillon schedules runs Digest --limit 10', 'carillon schedules runs "First light" --wait')
  define<WaitOptions & PageOptions>(runs, async ({ cli, args, options, show, note }) => {
    const client = connect(cli)
    const schedule = await getSchedule(client, args[0] ?? '')
    const { id, name } = schedule
    const first = await client.schedules.runs(id, pageQuery(options))
    const mustWait = options.wait === true && !first.items.some(isRunOver)
    if (mustWait) {
      note(waitingText(schedule, cli.clock.now()))
      await waitForRun(cli, {
        what: `a run of "${name}"`,
        find: async (within) => (await within.schedules.runs(id)).items.find(isRunOver),
        matches: (run) => run.scheduleId === id,
        timeoutMs: options.timeout,
      })
    }
    const page = mustWait ? await client.schedules.runs(id, pageQuery(options)) : first
    show(page, () => runTable(cli.terminal, page.items, zoneOf(schedule)))
    notePage(page, note, 'no runs yet')
    const latest = page.items.find(isRunOver)
    return options.wait === true && latest !== undefined ? exitForRun(latest) : 'ok'
  })
}

function waitingText(schedule: Schedule, now: number): string {
  const { name, state, nextSlotAt } = schedule
  if (nextSlotAt === null) return `waiting for a run of "${name}", which is ${state}…`
  return `waiting for the slot ${formatLocal(nextSlotAt, zoneOf(schedule))} (${formatRelative(nextSlotAt, now)})…`
}
