import { Option, type Command } from 'commander'

import type { Cli } from '../cli.ts'
import { examples, type Define, type Invocation } from '../define.ts'
import type { Exit } from '../exit-codes.ts'
import { checkEntries } from '../import/check-entries.ts'
import { createEntries } from '../import/create-entries.ts'
import { matchExisting, type MatchedEntry } from '../import/existing-schedules.ts'
import { finishEntries, settleExisting, type ExistingEntry } from '../import/finish-entries.ts'
import type { ImportEntry } from '../import/import-entry.ts'
import { IMPORT_FORMATS, type ImportFormat } from '../import/import-format.ts'
import { readImportFile } from '../import/read-import-file.ts'
import { listAllSchedules } from '../list-all.ts'
import { harmlessText } from '../output/harmless-text.ts'
import {
  outcomeAnswer,
  outcomeLines,
  planAnswer,
  planLines,
  type ImportOutcome,
  type ImportPlan,
} from '../output/import-view.ts'
import { readText } from '../read-text.ts'

interface ImportOptions {
  readonly format?: ImportFormat
  readonly url?: string
  readonly timezone?: string
  readonly dryRun?: boolean
  readonly keepGoing?: boolean
}

export function addImport(program: Command, define: Define): void {
  const command = program
    .command('import')
    .description('make schedules from JSON, YAML or a crontab; what is there already by name stays as it is')
    .argument('<file>', 'the file; - is standard input')
    .addOption(new Option('--format <format>', 'what it is, if its name does not say').choices(IMPORT_FORMATS))
    .option('--url <hook>', 'of a crontab: where commands that are no HTTP call are sent to')
    .option('--timezone <zone>', 'of a crontab without CRON_TZ (that of this machine)')
    .option('--dry-run', 'make nothing, and show what would be made')
    .option('--keep-going', 'import the rest if something is refused')
  examples(
    command,
    'carillon import schedules.yaml --dry-run',
    'crontab -l | carillon import - --format crontab --url https://hooks.example.com/run',
    'carillon export | CARILLON_API_KEY=another carillon import -',
  )
  define<ImportOptions>(command, importFile)
}

/** Checks all of it first: bad input writes nothing. */
async function importFile({ cli, args, options, note, show }: Invocation<ImportOptions>): Promise<Exit> {
  const [path = ''] = args
  const { notes, ...file } = await readImportFile(path, await readText(path, cli), {
    format: options.format,
    hookUrl: options.url,
    timezone: options.timezone,
    machineTimezone: new Intl.DateTimeFormat().resolvedOptions().timeZone,
  })
  for (const text of notes) note(harmlessText(text))
  const { matched, missing } = matchExisting(file.entries, await listAllSchedules(cli), cli.clock.now())
  const { existing, unfinished } = await settleExisting(cli, matched)
  const { checked, refusals } = await checkEntries(cli, missing, file.entries)
  const refused = [...file.refusals, ...refusals]
  if (options.dryRun === true) {
    const plan = { checked, existing, refused, notes }
    show(planAnswer(plan), () => planLines(cli.terminal, plan, cli.clock.now()))
    return refused.length > 0 ? 'refused' : 'ok'
  }
  if (refused.length > 0 && options.keepGoing !== true) {
    const outcome = { created: [], existing, refused, notes }
    show(outcomeAnswer(outcome), () => outcomeLines(outcome))
    note('nothing was imported: correct what is refused, or pass --keep-going to import the rest')
    return 'refused'
  }
  const outcome = await carryOut(cli, { checked, existing, refused, notes }, unfinished, file.entries)
  for (const text of outcome.notes.slice(notes.length)) note(harmlessText(text))
  show(outcomeAnswer(outcome), () => outcomeLines(outcome))
  return outcome.refused.length > 0 ? 'refused' : 'ok'
}

/** What was half done before comes first: a schedule that should be paused comes due. */
async function carryOut(
  cli: Cli,
  { checked, existing, refused, notes }: ImportPlan,
  unfinished: readonly MatchedEntry[],
  file: readonly ImportEntry[],
): Promise<ImportOutcome> {
  const finished = await finishEntries(cli, unfinished)
  const made = await createEntries(
    cli,
    checked.map(({ entry }) => entry),
    file,
  )
  const replayed = made.replayed.map((each) => ({ ...each, likeness: 'same' as const }))
  return {
    created: made.created,
    existing: [...existing.map(asFinished), ...replayed],
    refused: [...refused, ...made.refusals],
    notes: [...notes, ...finished],
  }
}

function asFinished(existing: ExistingEntry): ExistingEntry {
  return existing.likeness === 'unfinished' ? { ...existing, likeness: 'same' } : existing
}
