import { canonicalJson } from '@carillon/api'
import { Option, type Command } from 'commander'

import { checkEntries } from '../import/check-entries.ts'
import { createEntries } from '../import/create-entries.ts'
import {
  classifyExisting,
  finishEntries,
  matchExisting,
  type ExistingEntry,
  type MatchedEntry,
} from '../import/existing-schedules.ts'
import type { ImportEntry } from '../import/import-entry.ts'
import {
  outcomeJson,
  outcomeLines,
  planJson,
  planLines,
  type ImportOutcome,
  type ImportPlan,
} from '../import/import-report.ts'
import { toPortable } from '../import/portable-schedule.ts'
import { IMPORT_FORMATS, readImportFile, type ImportFormat } from '../import/read-import-file.ts'
import { readTargetJson } from '../options/target-json.ts'
import { escapeControls } from '../output/text.ts'
import { usageError } from '../process/cli-error.ts'
import type { Cli } from '../process/cli.ts'
import type { Exit } from '../process/exit-codes.ts'
import { readText } from '../process/input.ts'
import { listSchedules, listSharedGrantIds } from '../service/schedules.ts'
import { examples, type Define, type Invocation } from './define.ts'

interface ImportOptions {
  readonly format?: ImportFormat
  readonly url?: string
  readonly targetJson?: string
  readonly timezone?: string
  readonly dryRun?: boolean
  readonly keepGoing?: boolean
}

export function addImportCommand(program: Command, define: Define): void {
  const command = program
    .command('import')
    .description('create schedules from JSON, YAML or a crontab; a schedule whose name exists is left as it is')
    .argument('<file>', 'file to read; - for standard input')
    .addOption(new Option('--format <format>', 'format (default: by the name of the file)').choices(IMPORT_FORMATS))
    .option('--url <hook>', 'URL that receives the commands of a crontab other than curl and wget')
    .addOption(
      new Option(
        '--target-json <json|@file|->',
        'target of those commands, instead of --url; {command} in it becomes the command',
      ).conflicts('url'),
    )
    .option('--timezone <zone>', 'time zone of a crontab without CRON_TZ (default: zone of this machine)')
    .option('--dry-run', 'show what would be created, without creating it')
    .option('--keep-going', 'import the other schedules if some are refused')
  examples(
    command,
    'carillon import schedules.yaml --dry-run',
    'crontab -l | carillon import - --format crontab --url https://hooks.example.com/run',
    'carillon import my.crontab --target-json \'{"kind":"echo","payload":"{command}"}\'',
    'carillon export | CARILLON_API_KEY=another carillon import -',
  )
  define<ImportOptions>(command, importFile)
}

/** Checks the whole file before it creates anything. */
async function importFile({ cli, args, options, note, show }: Invocation<ImportOptions>): Promise<Exit> {
  const [path = ''] = args
  if (path === '-' && options.targetJson === '-') {
    throw usageError('expected one of the file and --target-json to be -, got both')
  }
  const hook = options.targetJson === undefined ? options.url : await readTargetJson(options.targetJson, cli)
  const { notes, ...file } = await readImportFile(path, await readText(path, cli), {
    format: options.format,
    hook,
    timezone: options.timezone,
    machineTimezone: new Intl.DateTimeFormat().resolvedOptions().timeZone,
  })
  for (const text of notes) note(escapeControls(text))
  const { matched, missing } = matchExisting(file.entries, await listSchedules(cli), cli.clock.now())
  const { existing, unfinished } = await classifyExisting(cli, matched)
  const { checked, refusals } = await checkEntries(cli, missing, file.entries)
  const refused = [...file.refusals, ...refusals]
  if (options.dryRun === true) {
    const plan = { checked, existing, refused, notes }
    show(planJson(plan), () => planLines(cli.terminal, plan, cli.clock.now()))
    return refused.length > 0 ? 'refused' : 'ok'
  }
  if (refused.length > 0 && options.keepGoing !== true) {
    const outcome = { created: [], existing, refused, notes }
    show(outcomeJson(outcome), () => outcomeLines(outcome))
    note('nothing was imported: correct the refused entries, or pass --keep-going to import the others')
    return 'refused'
  }
  const outcome = await carryOut(cli, { checked, existing, refused, notes }, unfinished, file.entries)
  for (const text of outcome.notes.slice(notes.length)) note(escapeControls(text))
  show(outcomeJson(outcome), () => outcomeLines(outcome))
  return outcome.refused.length > 0 ? 'refused' : 'ok'
}

/** Completes unfinished entries first: a schedule that should be paused is active until then. */
async function carryOut(
  cli: Cli,
  { checked, existing, refused, notes }: ImportPlan,
  unfinished: readonly MatchedEntry[],
  file: readonly ImportEntry[],
): Promise<ImportOutcome> {
  const finishedNotes = await finishEntries(cli, unfinished)
  const entries = checked.map(({ entry }) => entry)
  const { created, replayed, refusals } = await createEntries(cli, entries, file)
  const finished = existing.map((each): ExistingEntry =>
    each.likeness === 'unfinished' ? { ...each, likeness: 'same' } : each,
  )
  return {
    created,
    existing: [...finished, ...replayed.map((each) => ({ ...each, likeness: 'same' as const }))],
    refused: [...refused, ...refusals],
    notes: [...notes, ...finishedNotes],
  }
}

interface ExportOptions {
  readonly format: 'json' | 'yaml'
  readonly withGrants?: boolean
}

export function addExportCommand(program: Command, define: Define): void {
  const command = program
    .command('export')
    .description('write the schedules of the project as a file that import reads')
    .addOption(new Option('--format <format>', 'format of the file').choices(['json', 'yaml']).default('json'))
    .option('--with-grants', 'keep the ids of shared grants, which only this project knows')
  examples(command, 'carillon export > schedules.json', 'carillon export --format yaml > schedules.yaml')
  define<ExportOptions>(command, async ({ cli, options, note }) => {
    const all = await listSchedules(cli)
    const open = all.filter(({ state }) => state !== 'completed')
    // A grant that belongs to one schedule is created again with that schedule.
    const shared = await listSharedGrantIds(cli)
    const withGrants = options.withGrants === true
    // The order does not depend on when schedules were created, so that two exports can be compared.
    const schedules = open
      .map((schedule) => {
        const { grantId } = schedule
        return { ...toPortable(schedule), ...(withGrants && shared.has(grantId) ? { grantId } : {}) }
      })
      .toSorted((a, b) => (canonicalJson([a.name, a]) < canonicalJson([b.name, b]) ? -1 : 1))
    cli.terminal.writeOut(await formatFile({ schedules }, options.format))
    const granted = open.filter(({ grantId }) => shared.has(grantId)).length
    const completed = all.length - open.length
    if (completed > 0) note(`not exported: completed schedules (${completed}), which have no further slots`)
    if (granted > 0 && !withGrants) {
      note(`not exported: shared grants, used by ${granted} of the schedules; set them again after the import`)
    }
  })
}

async function formatFile(content: object, format: ExportOptions['format']): Promise<string> {
  if (format === 'json') return `${JSON.stringify(content, null, 2)}\n`
  const { stringify } = await import('yaml')
  // Anchors would be valid YAML but hard to read.
  return stringify(content, { aliasDuplicateObjects: false })
}
