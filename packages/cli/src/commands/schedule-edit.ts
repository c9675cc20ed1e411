import type { EditPlan } from '@carillon/api'
import type { Command } from 'commander'

import { addCadenceOptions } from '../cadence-options.ts'
import { connect } from '../connection.ts'
import { examples, type Define, type Invocation } from '../define.ts'
import { findSchedule } from '../find-schedule.ts'
import { formatLocal, formatRelative } from '../output/format-time.ts'
import { scheduleFields, zoneOf } from '../output/schedule-view.ts'
import { styled } from '../output/style.ts'
import type { Terminal } from '../output/terminal.ts'
import { addPolicyOptions } from '../policy-options.ts'
import { readEdit, type BodyOptions } from '../schedule-body.ts'
import { addTargetOptions } from '../target-options.ts'

interface EditOptions extends BodyOptions {
  readonly name?: string
  readonly dryRun?: boolean
}

export function addEdit(schedules: Command, define: Define): void {
  const edit = schedules
    .command('edit')
    .description('change a schedule; what is not named stays')
    .argument('<schedule>', 'its id or exact name')
    .option('--name <name>', 'what it is called from now on')
    .option('--dry-run', 'change nothing, and show which slots would come and go')
  addCadenceOptions(edit)
  addTargetOptions(edit)
  addPolicyOptions(edit)
    .option('--grant <id>', 'by what right it runs; none for a grant of its own')
    .option('--file <path>', 'what is to change as JSON, as the API takes it; - is standard input')
  examples(
    edit,
    'carillon schedules edit Digest --cron "0 8 * * 1-5" --dry-run',
    'carillon schedules edit Digest --timezone Europe/Lisbon --retries 3',
    'carillon schedules edit Digest --url https://digest.internal/v2/run',
  )
  define<EditOptions>(edit, editSchedule)
}

/** For the revision that was read: what somebody else changes in between is not lost. */
async function editSchedule({ cli, args, options, show, note }: Invocation<EditOptions>): Promise<void> {
  const client = connect(cli)
  const schedule = await findSchedule(client, args[0] ?? '')
  const { id, revision } = schedule
  const body = await readEdit(schedule, options, cli)
  if (options.dryRun === true) {
    const plan = await client.schedules.planEdit(id, body, { revision })
    show(plan, () => planLines(cli.terminal, plan, cli.clock.now()))
    note('nothing was changed')
    return
  }
  const edited = await client.schedules.edit(id, body, { revision })
  show(edited, () => scheduleFields(cli.terminal, edited, cli.clock.now()))
}

function planLines(screen: Terminal, { schedule, added, removed, comparedUntil }: EditPlan, now: number): string[] {
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
    ...(changes.length === 0 ? ['no slot comes or goes'] : []),
    ...(comparedUntil === null ? [] : [`compared until ${formatLocal(comparedUntil, zone)}`]),
  ]
}
