import type { Client, EditPlan, Schedule } from '@carillon/api'
import type { Command } from 'commander'

import { addCadenceOptions } from '../options/cadence-options.ts'
import { addPolicyOptions } from '../options/policy-options.ts'
import { readEdit, type BodyOptions } from '../options/schedule-body.ts'
import { addTargetOptions } from '../options/target-options.ts'
import { formatLocal, formatRelative } from '../output/format-time.ts'
import { kindPreviewLines, scheduleFields, zoneOf } from '../output/schedule-view.ts'
import { styled } from '../output/style.ts'
import type { Screen } from '../output/terminal.ts'
import { confirm } from '../process/input.ts'
import { connect } from '../service/connect.ts'
import { getSchedule } from '../service/schedules.ts'
import { examples, type Define, type Invocation } from './define.ts'

interface EditOptions extends BodyOptions {
  readonly name?: string
  readonly dryRun?: boolean
}

export function addEditCommand(schedules: Command, define: Define): void {
  const edit = schedules
    .command('edit')
    .description('change a schedule; options that are not passed keep their values')
    .argument('<schedule>', 'id or exact name')
    .option('--name <name>', 'new name')
    .option('--dry-run', 'show which slots would be added and removed, without changing anything')
  addCadenceOptions(edit)
  addTargetOptions(edit)
  addPolicyOptions(edit)
    .option('--grant <id>', 'grant that authorizes the runs; none for a grant of its own')
    .option('--file <path>', 'the changes as JSON, as the API takes them; - for standard input')
  examples(
    edit,
    'carillon schedules edit Digest --cron "0 8 * * 1-5" --dry-run',
    'carillon schedules edit Digest --timezone Europe/Lisbon --retries 3',
    'carillon schedules edit Digest --url https://digest.internal/v2/run',
    'carillon schedules edit Digest --run-limit 10',
  )
  define<EditOptions>(edit, async ({ cli, args, options, show, note }) => {
    const client = connect(cli)
    const schedule = await getSchedule(client, args[0] ?? '')
    const body = await readEdit(schedule, options, cli)
    // The server refuses the edit if another client has changed the schedule since this command read it.
    const { id, revision } = schedule
    if (options.dryRun === true) {
      const plan = await client.schedules.planEdit(id, body, { revision })
      show(plan, () => planLines(cli.terminal, plan, cli.clock.now()))
      note('dry run: nothing was changed')
      return
    }
    const edited = await client.schedules.edit(id, body, { revision })
    show(edited, () => scheduleFields(cli.terminal, edited, cli.clock.now()))
  })
}

function planLines(screen: Screen, plan: EditPlan, now: number): string[] {
  const { schedule, added, removed, comparedUntil, preview } = plan
  const zone = zoneOf(schedule)
  const changes = [
    ...added.map(({ scheduledFor }) => ({ scheduledFor, sign: '+', style: 'green' as const })),
    ...removed.map(({ scheduledFor }) => ({ scheduledFor, sign: '-', style: 'red' as const })),
  ].toSorted((a, b) => a.scheduledFor.localeCompare(b.scheduledFor))
  return [
    schedule.description,
    '',
    ...changes.map(({ scheduledFor, sign, style }) => {
      const text = `${sign} ${formatLocal(scheduledFor, zone)}  ${formatRelative(scheduledFor, now)}`
      return styled(screen, style, text)
    }),
    ...(changes.length === 0 ? ['no slot is added or removed'] : []),
    ...(comparedUntil === null ? [] : [`compared until ${formatLocal(comparedUntil, zone)}`]),
    ...kindPreviewLines(screen, preview),
  ]
}

const REASON_DEFAULT = 'paused from the command line'

export function addPauseCommand(schedules: Command, define: Define): void {
  const pause = schedules
    .command('pause')
    .description('pause a schedule: no slot starts until it is resumed')
    .argument('<schedule>', 'id or exact name')
    .option('--reason <text>', 'why it is paused', REASON_DEFAULT)
  examples(pause, 'carillon schedules pause Digest --reason "the provider is down"')
  define<{ readonly reason: string }>(pause, async (invocation) => {
    const { reason } = invocation.options
    await change(invocation, (client, { id, revision }) => client.schedules.pause(id, { reason, revision }))
  })
}

export function addResumeCommand(schedules: Command, define: Define): void {
  const resume = schedules
    .command('resume')
    .description('resume a paused schedule with its next future slot')
    .argument('<schedule>', 'id or exact name')
  examples(resume, 'carillon schedules resume Digest')
  define(resume, async (invocation) => {
    await change(invocation, (client, { id, revision }) => client.schedules.resume(id, { revision }))
  })
}

async function change(
  { cli, args, show }: Invocation<object>,
  act: (client: Client, schedule: Schedule) => Promise<Schedule>,
): Promise<void> {
  const client = connect(cli)
  const changed = await act(client, await getSchedule(client, args[0] ?? ''))
  show(changed, () => [stateLine(changed, cli.clock.now())])
}

function stateLine(schedule: Schedule, now: number): string {
  const { name, state, nextSlotAt } = schedule
  if (nextSlotAt === null) return `${name} is ${state}`
  const next = `${formatLocal(nextSlotAt, zoneOf(schedule))} (${formatRelative(nextSlotAt, now)})`
  return `${name} is ${state}, next slot ${next}`
}

export function addDeleteCommand(schedules: Command, define: Define): void {
  const remove = schedules
    .command('delete')
    .description('delete a schedule; its past runs stay readable')
    .argument('<schedule>', 'id or exact name')
    .option('--yes', 'do not ask for confirmation')
  examples(remove, 'carillon schedules delete Digest', 'carillon schedules delete Digest --yes')
  define<{ readonly yes?: boolean }>(remove, async ({ cli, args, options, show }) => {
    const client = connect(cli)
    const { id, name, revision } = await getSchedule(client, args[0] ?? '')
    await confirm(cli, `Delete "${name}" (${id})?`, options.yes)
    await client.schedules.delete(id, { revision })
    show({ id, name, isDeleted: true }, () => [`${name} is deleted`])
  })
}
