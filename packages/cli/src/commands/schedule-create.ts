import { isRunOver, PREVIEW_COUNT, type Client, type Schedule, type ScheduleInput } from '@carillon/api'
import { Option, type Command } from 'commander'

import { addCadenceOptions, getCadence, type CadenceOptions } from '../options/cadence-options.ts'
import { dropUndefined, durationMs, moment, wholeNumber } from '../options/option-values.ts'
import { addPolicyOptions } from '../options/policy-options.ts'
import { readInput, type BodyOptions } from '../options/schedule-body.ts'
import { readTargetJson } from '../options/target-json.ts'
import { addTargetOptions } from '../options/target-options.ts'
import { runFields } from '../output/run-view.ts'
import { previewLines, scheduleFields, zoneOf } from '../output/schedule-view.ts'
import type { Exit } from '../process/exit-codes.ts'
import { connect } from '../service/connect.ts'
import { exitForRun, waitForRun } from '../service/wait-for-run.ts'
import { examples, type Define, type Invocation } from './define.ts'

interface CreateOptions extends BodyOptions {
  readonly idempotencyKey?: string
  readonly dryRun?: boolean
  readonly wait?: boolean
  readonly waitTimeout?: number
}

export function addCreateCommand(schedules: Command, define: Define): void {
  const create = schedules
    .command('create')
    .description('create a schedule')
    .argument('[name]', 'name of the schedule; optional with --file')
  addCadenceOptions(create)
  addTargetOptions(create)
  addPolicyOptions(create)
    .option('--grant <id>', 'grant that authorizes the runs (default: a new grant for this schedule)')
    .option('--owner <subject>', 'owner, such as user:alice (default: you)')
    .option('--file <path>', 'the whole schedule as JSON, as the API takes it; - for standard input')
    .option('--idempotency-key <key>', 'create only one schedule for the same key and body within a day')
    .addOption(new Option('--dry-run', 'show the schedule and its next slots without creating it').conflicts('wait'))
    .option('--wait', 'wait until the first run is over, and show it')
    .addOption(new Option('--wait-timeout <duration>', 'time limit of --wait (default: none)').argParser(durationMs))
  examples(
    create,
    'carillon schedules create "First light" --in 5s --url http://127.0.0.1:7400/healthz --method GET',
    'carillon schedules create Digest --cron "0 9 * * 1-5" --timezone Europe/Madrid --url https://digest.internal/run',
    'carillon schedules create Beat --every 15m --url https://hooks.example.com/beat --payload \'{"list":"a"}\' --overlap queue',
    'carillon schedules create Hello --every 1m --target-json \'{"kind":"echo","payload":"hello"}\' --run-limit 3',
    'carillon schedules create --file schedule.json --dry-run',
    'carillon schedules create --file schedule.json --wait',
  )
  define<CreateOptions>(create, async (invocation) => {
    const { cli, args, options, show } = invocation
    const input = await readInput(args[0], options, cli)
    const client = connect(cli)
    if (options.dryRun === true) return showDryRun(invocation, client, input)
    const schedule = await client.schedules.create(input, dropUndefined({ idempotencyKey: options.idempotencyKey }))
    if (options.wait === true) return showFirstRun(invocation, client, schedule)
    show(schedule, () => scheduleFields(cli.terminal, schedule, cli.clock.now()))
    return 'ok'
  })
}

async function showDryRun(
  { cli, note, show }: Invocation<CreateOptions>,
  client: Client,
  input: ScheduleInput,
): Promise<Exit> {
  const preview = await client.schedules.preview(input)
  show(preview, () => previewLines(cli.terminal, preview, zoneOf(preview), cli.clock.now()))
  note('dry run: nothing was created')
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
    find: async (within) => (await within.schedules.runs(id)).items.findLast(isRunOver),
    matches: (run) => run.scheduleId === id,
    timeoutMs: options.waitTimeout,
  })
  const run = await client.runs.get(runId)
  show(run, () => runFields(cli.terminal, run, zoneOf({ cadence })))
  return exitForRun(run)
}

interface PreviewOptions extends CadenceOptions {
  readonly from?: string
  readonly count?: number
  readonly targetJson?: string
}

export function addPreviewCommand(schedules: Command, define: Define): void {
  const preview = schedules.command('preview').description('show the slots of a cadence without creating a schedule')
  const count = `number of slots, ${PREVIEW_COUNT.min} to ${PREVIEW_COUNT.max} (default: ${PREVIEW_COUNT.default})`
  addCadenceOptions(preview)
    .addOption(new Option('--from <time>', 'show slots after this time (default: now)').argParser(moment))
    .addOption(new Option('--count <count>', count).argParser(wholeNumber))
    .addOption(
      new Option('--target-json <json|@file|->', 'check this target too, and show what its kind says about the slots')
        .conflicts('from')
        .conflicts('count'),
    )
  examples(
    preview,
    'carillon schedules preview --cron "30 2 * * *" --timezone America/New_York',
    'carillon schedules preview --rrule "FREQ=MONTHLY;BYDAY=1MO" --start 2026-01-05T09:00:00 --count 12',
    'carillon schedules preview --cron @daily --target-json @target.json',
  )
  define<PreviewOptions>(preview, async ({ cli, options, show }) => {
    const cadence = getCadence(options, cli.clock.now())
    if (options.targetJson !== undefined) {
      const target = await readTargetJson(options.targetJson, cli)
      const plan = await connect(cli).schedules.preview({ name: 'preview', cadence, target })
      show(plan, () => previewLines(cli.terminal, plan, zoneOf({ cadence }), cli.clock.now()))
      return
    }
    const query = dropUndefined({ from: options.from, count: options.count })
    const answer = await connect(cli).cadence.preview({ cadence, ...query })
    show(answer, () => previewLines(cli.terminal, answer, zoneOf({ cadence }), cli.clock.now()))
  })
}
