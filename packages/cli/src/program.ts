import { Command } from 'commander'

import { addAudit } from './commands/audit.ts'
import { addCompletion } from './commands/completion.ts'
import { addDoctor } from './commands/doctor.ts'
import { addEvents } from './commands/events.ts'
import { addExport } from './commands/export.ts'
import { addGrants } from './commands/grants.ts'
import { addImport } from './commands/import.ts'
import { addKeys } from './commands/keys.ts'
import { addMembers } from './commands/members.ts'
import { addMigrate } from './commands/migrate.ts'
import { addProject } from './commands/project.ts'
import { addRuns } from './commands/runs.ts'
import { addSchedules } from './commands/schedules.ts'
import { addSecrets } from './commands/secrets.ts'
import { addServer } from './commands/server.ts'
import { addTenants } from './commands/tenants.ts'
import { addUp } from './commands/up.ts'
import { addWorker } from './commands/worker.ts'
import { examples, type Define } from './define.ts'
import { exitCodeLines } from './exit-codes.ts'
import type { Terminal } from './output/terminal.ts'
import { VERSION } from './version.ts'

export interface ProgramDeps {
  readonly define: Define
  readonly terminal: Pick<Terminal, 'writeOut' | 'writeError' | 'width' | 'hasColor'>
}

const ENVIRONMENT = [
  ['CARILLON_URL', 'where the service is (http://127.0.0.1:7400)'],
  ['CARILLON_API_KEY', 'the key to ask it with (else admin.key of the data directory)'],
  ['CARILLON_DATA_DIR', 'where the embedded database and the key are (.carillon)'],
  ['DATABASE_URL', 'a Postgres of your own, instead of the embedded one'],
  ['CARILLON_DEBUG', '1 shows where an error comes from'],
  ['NO_COLOR', 'no colours'],
] as const

const WIDTH_MAX = 100

/** The whole tree of commands. Nothing is done until it parses arguments. */
export function createProgram({ define, terminal }: ProgramDeps): Command {
  const program = new Command('carillon')
    .description('One durable clock for everything that must happen later.')
    .version(`carillon ${VERSION}`, '--version', 'show the version')
    .option('--json', 'results as JSON on stdout, errors as JSON on stderr')
    .helpOption('-h, --help', 'show this help')
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({
      writeOut: terminal.writeOut,
      writeErr: terminal.writeError,
      // Errors are shown where all of them are.
      outputError: () => {},
      getOutHelpWidth: () => Math.min(terminal.width ?? WIDTH_MAX, WIDTH_MAX),
      getErrHelpWidth: () => Math.min(terminal.width ?? WIDTH_MAX, WIDTH_MAX),
      getOutHasColors: () => terminal.hasColor,
      getErrHasColors: () => terminal.hasColor,
    })
    .exitOverride()
  program.commandsGroup('Run it:')
  addUp(program, define)
  addServer(program, define)
  addWorker(program, define)
  addMigrate(program, define)
  addDoctor(program, define)
  program.commandsGroup('Ask it:')
  addSchedules(program, define)
  addRuns(program, define)
  addEvents(program, define)
  addGrants(program, define)
  addSecrets(program, define)
  addAudit(program, define)
  program.commandsGroup('Say who may:')
  addKeys(program, define)
  addMembers(program, define)
  addTenants(program, define)
  addProject(program, define)
  program.commandsGroup('Move in and out:')
  addImport(program, define)
  addExport(program, define)
  program.commandsGroup('Other:')
  addCompletion(program, define)
  program.helpCommand('help [command]', 'show the help of a command')
  examples(
    program,
    'carillon up',
    'carillon schedules create "First light" --in 5s --url http://127.0.0.1:7400/healthz --method GET',
    'carillon schedules list',
    'carillon schedules runs "First light" --wait',
  )
  const environment = ENVIRONMENT.map(([name, meaning]) => `  ${name.padEnd(18)} ${meaning}`)
  program.addHelpText('after', ['', 'Environment:', ...environment, '', 'Exit codes:', ...exitCodeLines()].join('\n'))
  return program
}
