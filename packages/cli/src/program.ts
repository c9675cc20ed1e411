import { RETENTION_DAYS, SERVICE_DEFAULTS } from '@carillon/api'
import { Command } from 'commander'

import { addAuditCommand } from './commands/audit.ts'
import { addCompletionCommand } from './commands/completion.ts'
import { addDoctorCommand, addMigrateCommand } from './commands/database.ts'
import { examples, type Define } from './commands/define.ts'
import { addEventsCommand } from './commands/events.ts'
import { addGrantsCommand } from './commands/grants.ts'
import { addExportCommand, addImportCommand } from './commands/import-export.ts'
import { addInitCommand } from './commands/init.ts'
import { addKeysCommand } from './commands/keys.ts'
import { addMembersCommand } from './commands/members.ts'
import { addProjectCommand } from './commands/project.ts'
import { addRunsCommand } from './commands/runs.ts'
import { addSchedulesCommand } from './commands/schedules.ts'
import { addSecretsCommand } from './commands/secrets.ts'
import { addServerCommand, addWorkerCommand } from './commands/server-and-worker.ts'
import { addTargetKindsCommand } from './commands/target-kinds.ts'
import { addTenantsCommand } from './commands/tenants.ts'
import { addUpCommand } from './commands/up.ts'
import type { Terminal } from './output/terminal.ts'
import { exitCodeLines } from './process/exit-codes.ts'
import { VERSION } from './process/version.ts'
import { URL_DEFAULT } from './service/connect.ts'

export interface ProgramDeps {
  readonly define: Define
  readonly terminal: Pick<Terminal, 'writeOut' | 'writeError' | 'width' | 'hasColor'>
}

const ENVIRONMENT = [
  ['CARILLON_URL', `URL of the server (default: ${URL_DEFAULT})`],
  ['CARILLON_API_KEY', 'API key (default: admin.key in the data directory)'],
  ['CARILLON_DATA_DIR', `directory of the embedded database and the key (default: ${SERVICE_DEFAULTS.dataDir})`],
  ['DATABASE_URL', 'your own Postgres, instead of the embedded one'],
  ['CARILLON_SCHEMA', 'schema of the tables, if several Carillons share a database (default: carillon)'],
  ['CARILLON_MODULES', 'modules of your own, comma-separated: files such as ./my-module.ts, or packages'],
  ['CARILLON_RETENTION_DAYS', `for how many days the ledger keeps its lines (default: ${RETENTION_DAYS.default})`],
  ['CARILLON_DEBUG', '1 prints the stack trace of an error'],
  ['NO_COLOR', 'turns colours off'],
] as const

const TERMS = [
  ['slot', 'a time at which a schedule is due'],
  ['run', 'what happened to a slot: its state, its reason and its attempts'],
  ['target', 'what a run calls, such as an HTTP endpoint'],
  ['grant', 'the permission under which a schedule runs'],
  ['admin key', 'the key in CARILLON_ADMIN_KEY or admin.key: it administers all tenants'],
] as const

const WIDTH_MAX = 100

/** Builds the tree of commands. Nothing runs until it parses arguments. */
export function createProgram({ define, terminal }: ProgramDeps): Command {
  const program = new Command('carillon')
    .description('Durable scheduler on Postgres: calls targets on time, and records every run.')
    .version(`carillon ${VERSION}`, '--version', 'show the version')
    .option('--json', 'print results as JSON on stdout, and errors as JSON on stderr')
    .helpOption('-h, --help', 'show this help')
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({
      writeOut: terminal.writeOut,
      writeErr: terminal.writeError,
      // `reportError` prints all errors.
      outputError: () => {},
      getOutHelpWidth: () => Math.min(terminal.width ?? WIDTH_MAX, WIDTH_MAX),
      getErrHelpWidth: () => Math.min(terminal.width ?? WIDTH_MAX, WIDTH_MAX),
      getOutHasColors: () => terminal.hasColor,
      getErrHasColors: () => terminal.hasColor,
    })
    .exitOverride()
  program.commandsGroup('Run and check Carillon:')
  addUpCommand(program, define)
  addServerCommand(program, define)
  addWorkerCommand(program, define)
  addMigrateCommand(program, define)
  addDoctorCommand(program, define)
  addAuditCommand(program, define)
  program.commandsGroup('Schedules and runs:')
  addSchedulesCommand(program, define)
  addRunsCommand(program, define)
  addEventsCommand(program, define)
  addTargetKindsCommand(program, define)
  program.commandsGroup('Access control:')
  addKeysCommand(program, define)
  addMembersCommand(program, define)
  addGrantsCommand(program, define)
  addSecretsCommand(program, define)
  program.commandsGroup('Tenants and projects:')
  addTenantsCommand(program, define)
  addProjectCommand(program, define)
  program.commandsGroup('Import and export:')
  addImportCommand(program, define)
  addExportCommand(program, define)
  program.commandsGroup('Other:')
  addInitCommand(program, define)
  addCompletionCommand(program, define)
  program.helpCommand('help [command]', 'show help for a command')
  examples(
    program,
    'carillon up',
    'carillon schedules create "First light" --in 5s --url http://127.0.0.1:7400/healthz --method GET',
    'carillon schedules list',
    'carillon schedules runs "First light" --wait',
  )
  const sections = [
    ['Terms:', ...definitionLines(TERMS)],
    ['Environment:', ...definitionLines(ENVIRONMENT)],
    ['Exit codes:', ...exitCodeLines()],
  ]
  program.addHelpText('after', sections.flatMap((lines) => ['', ...lines]).join('\n'))
  return program
}

function definitionLines(definitions: readonly (readonly [name: string, meaning: string])[]): string[] {
  return definitions.map(([name, meaning]) => `  ${name.padEnd(18)} ${meaning}`)
}
