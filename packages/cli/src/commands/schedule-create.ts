import type { Client, Schedule, ScheduleInput } from '@carillon/api'
import { Option, type Command } from 'commander'

import { addCadenceOptions } from '../cadence-options.ts'
import { connect } from '../connection.ts'
import { examples, type Define, type Invocation } from '../define.ts'
import type { Exit } from '../exit-codes.ts'
import { durationMs } from '../option-values.ts'
import { previewLines } from '../output/preview-view.ts'
import { runFields } from '../output/run-view.ts'
import { scheduleFields, zoneOf } from '../output/schedule-view.ts'
import { addPolicyOptions } from '../policy-options.ts'
import { readInput, type BodyOptions } from '../schedule-body.ts'
import { addTargetOptions } from '../target-options.ts'
import { exitOf, isOver, waitForRun } from '../wait-for-run.ts'

interface CreateOptions extends BodyOptions {
  readonly idempotencyKey?: string
  readonly dryRun?: boolean
  readonly wait?: boolean
  readonly waitTimeout?: number
}

export function addCreate(schedules: Command, define: Define): void {
  const create = schedules
    .command('create')
    .description('make a schedule')
    .argument('[name]', 'what it is called; not needed with --file')
  addCadenceOptions(create)
  addTargetOptions(create)
  addPolicyOptions(create)
    .option('--grant <id>', 'by what right it runs (a grant of its own)')
    .option('--owner <subject>', 'whose it is, such as user:alice (yours)')
    .option('--file <path>', 'all of it as JSON, as the API takes it; - is standard input')
    .option('--idempotency-key <key>', 'the same key and body within a day make one schedule')
    .addOption(new Option('--dry-run', 'make nothing, and show what would be made and when').conflicts('wait'))
    .option('--wait', 'wait until its first run is over, and show it')
    .addOption(new Option('--wait-timeout <duration>', 'how long at most (for ever)').argParser(durationMs))
  examples(
    create,
    'carillon schedules create "First light" --in 5s --url http://127.0.0.1:7400/healthz --method GET',
    'carillon schedules create Digest --cron "0 9 * * 1-5" --timezone Europe/Madrid --url https://digest.internal/run',
    'carillon schedules create Beat --every 15m --url https://hooks.example.com/beat --payload \'{"list":"a"}\' --overlap queue',
    'carillon schedules create --file schedule.json --dry-run',
    'carillon schedules create --file schedule.json --wait',
  )
  define<CreateOptions>(create, createSchedule)
}

async function createSchedule(invocation: Invocation<CreateOptions>): Promise<Exit> {
  const { cli, args, options } = invocation
  const input = await readInput(args[0], options, cli)
  const { idempotencyKey, wait, dryRun } = options
  const client = connect(cli)
  if (dryRun === true) return showPreview(invocation, client, input)
  const schedule = await client.schedules.create(input, idempotencyKey === undefined ? {} : { idempotencyKey })
  if (wait === true) return showFirstRun(invocation, client, schedule)
  invocation.show(schedule, () => scheduleFields(cli.terminal, schedule, cli.clock.now()))
  return 'ok'
}

async function showPreview(
  { cli, note, show }: Invocation<CreateOptions>,
  client: Client,
  input: ScheduleInput,
): Promise<Exit> {
  const preview = await client.schedules.preview(input)
  show(preview, () => previewLines(cli.terminal, preview, zoneOf(preview), cli.clock.now()))
  note('nothing was made')
  return 'ok'
}

async function showFirstRun(
  { cli, options, note, show }: Invocation<CreateOptions>,
  client: Client,
  { id, name, cadence }: Schedule,
): Promise<Exit> {
  note(`created ${id}, waiting for its first run…`)
  const { id: runId } = await waitForRun(cli, {
    what: `the first run of "${name}"`,
    look: async (within) => (await within.schedules.runs(id)).items.findLast(isOver),
    isIt: (run) => run.scheduleId === id,
    timeoutMs: options.waitTimeout,
  })
  const run = await client.runs.get(runId)
  show(run, () => runFields(cli.terminal, run, zoneOf({ cadence })))
  return exitOf(run)
}
