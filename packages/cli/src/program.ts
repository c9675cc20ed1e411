import { SERVICE_DEFAULTS } from '@carillon/api'
import { Command } from 'commander'

import { addAudit } from './commands/audit.ts'
import { addCompletion } from './commands/completion.ts'
import { addDoctor, addMigrate } from './commands/database.ts'
import { examples, type Define } from './commands/define.ts'
import { addEvents } from './commands/events.ts'
import { addGrants } from './commands/grants.ts'
import { addExport, addImport } from './commands/import-export.ts'
import { addKeys } from './commands/keys.ts'
import { addMembers } from './commands/members.ts'
import { addProject } from './commands/project.ts'
import { addRuns } from './commands/runs.ts'
import { addSchedules } from './commands/schedules.ts'
import { addSecrets } from './commands/secrets.ts'
import { addServer, addWorker } from './commands/server-and-worker.ts'
import { addTenants } from './commands/tenants.ts'
import { addUp } from './commands/up.ts'
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
  addUp(program, define)
  addServer(program, define)
  addWorker(program, define)
  addMigrate(program, define)
  addDoctor(program, define)
  addAudit(program, define)
  program.commandsGroup('Schedules and runs:')
  addSchedules(program, define)
  addRuns(program, define)
  addEvents(program, define)
  program.commandsGroup('Access control:')
  addKeys(program, define)
  addMembers(program, define)
  addGrants(program, define)
  addSecrets(program, define)
  program.commandsGroup('Tenants and projects:')
  addTenants(program, define)
  addProject(program, define)
  program.commandsGroup('Import and export:')
  addImport(program, define)
  addExport(program, define)
  program.commandsGroup('Other:')
  addCompletion(program, define)
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
