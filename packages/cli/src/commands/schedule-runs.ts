import type { Client, Schedule } from '@carillon/api'
import { Option, type Command } from 'commander'

import { connect } from '../connection.ts'
import { examples, type Define, type Invocation } from '../define.ts'
import type { Exit } from '../exit-codes.ts'
import { findSchedule } from '../find-schedule.ts'
import { durationMs } from '../option-values.ts'
import { formatLocal, formatRelative } from '../output/format-time.ts'
import { runFields, runTable } from '../output/run-view.ts'
import { zoneOf } from '../output/schedule-view.ts'
import { addPageOptions, notePage, pageQuery, type PageOptions } from '../page-options.ts'
import { exitOf, isOver, waitForRun } from '../wait-for-run.ts'

interface WaitOptions {
  readonly wait?: boolean
  readonly timeout?: number
}

export function addScheduleRuns(schedules: Command, define: Define): void {
  const run = schedules
    .command('run')
    .description('run a schedule now; its cadence goes on as if it had not been')
    .argument('<schedule>', 'its id or exact name')
    .option('--wait', 'wait until the run is over')
    .addOption(new Option('--timeout <duration>', 'how long at most (for ever)').argParser(durationMs))
  examples(run, 'carillon schedules run Digest', 'carillon schedules run Digest --wait --timeout 30s')
  define<WaitOptions>(run, runNow)

  const runs = schedules
    .command('runs')
    .description('list the runs of a schedule, the latest slot first')
    .argument('<schedule>', 'its id or exact name')
    .option('--wait', 'wait until there is a run that is over')
    .addOption(new Option('--timeout <duration>', 'how long at most (for ever)').argParser(durationMs))
  addPageOptions(runs)
  examples(runs, 'carillon schedules runs Digest --limit 10', 'carillon schedules runs "First light" --wait')
  define<WaitOptions & PageOptions>(runs, listRuns)
}

async function runNow({ cli, args, options, show, note }: Invocation<WaitOptions>): Promise<Exit> {
  const client = connect(cli)
  const schedule = await findSchedule(client, args[0] ?? '')
  const begun = await client.schedules.run(schedule.id)
  if (options.wait !== true) {
    show(begun, () => runFields(cli.terminal, begun, zoneOf(schedule)))
    note(`\`carillon runs get ${begun.id}\` shows what becomes of it`)
    return 'ok'
  }
  note(`run ${begun.id} is under way…`)
  const { id } = await waitForRun(cli, {
    what: `run ${begun.id}`,
    look: (within) => within.runs.get(begun.id),
    isIt: (run) => run.id === begun.id,
    timeoutMs: options.timeout,
  })
  const run = await client.runs.get(id)
  show(run, () => runFields(cli.terminal, run, zoneOf(schedule)))
  return exitOf(run)
}

async function listRuns({ cli, args, options, show, note }: Invocation<WaitOptions & PageOptions>): Promise<Exit> {
  const client = connect(cli)
  const schedule = await findSchedule(client, args[0] ?? '')
  const { id, name } = schedule
  const first = await client.schedules.runs(id, pageQuery(options))
  const isWaiting = options.wait === true && !first.items.some(isOver)
  if (isWaiting) {
    note(waitingText(schedule, cli.clock.now()))
    await waitForRun(cli, {
      what: `a run of "${name}"`,
      look: (within) => findOver(within, id),
      isIt: (run) => run.scheduleId === id,
      timeoutMs: options.timeout,
    })
  }
  const page = isWaiting ? await client.schedules.runs(id, pageQuery(options)) : first
  show(page, () => runTable(cli.terminal, page.items, zoneOf(schedule)))
  notePage(page, note, 'no runs yet')
  const latest = page.items.find(isOver)
  return options.wait === true && latest !== undefined ? exitOf(latest) : 'ok'
}

async function findOver(client: Client, id: string) {
  return (await client.schedules.runs(id)).items.find(isOver)
}

function waitingText(schedule: Schedule, now: number): string {
  const { name, state, nextSlotAt } = schedule
  if (nextSlotAt === null) return `waiting for a run of "${name}", which is ${state}…`
  return `waiting for the slot ${formatLocal(nextSlotAt, zoneOf(schedule))} (${formatRelative(nextSlotAt, now)})…`
}
