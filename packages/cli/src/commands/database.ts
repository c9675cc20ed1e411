import { Option, type Command } from 'commander'

import { wholeNumber } from '../options/option-values.ts'
import { styled, styleOfState } from '../output/style.ts'
import { escapeControls, padText } from '../output/text.ts'
import type { Cli } from '../process/cli.ts'
import { confirm } from '../process/input.ts'
import { readServiceSettings } from '../service/run-service.ts'
import { examples, type Define } from './define.ts'

export function addMigrateCommand(program: Command, define: Define): void {
  const migrate = program.command('migrate').description('update the database schema, or revert it')
  addUpCommand(migrate, define)
  addDown(migrate, define)
  addStatus(migrate, define)
}

function addUpCommand(migrate: Command, define: Define): void {
  const up = migrate.command('up').description('apply pending migrations')
  examples(up, 'carillon migrate up')
  define(up, async ({ cli, show }) => {
    const answer = await (await openMigrations(cli)).up()
    show(answer, () =>
      answer.applied.length === 0 ? ['nothing to apply'] : answer.applied.map((name) => `applied ${name}`),
    )
  })
}

interface DownOptions {
  readonly to: number
  readonly module?: string
  readonly yes?: boolean
}

function addDown(migrate: Command, define: Define): void {
  const down = migrate
    .command('down')
    .description('revert all migrations after a number; the data in their tables is lost')
    .addOption(
      new Option('--to <number>', 'last migration to keep; 0 reverts all').argParser(wholeNumber).makeOptionMandatory(),
    )
    .option('--module <name>', "revert migrations of this module instead of Carillon's own")
    .option('--yes', 'do not ask for confirmation')
  examples(down, 'carillon migrate down --to 1', 'carillon migrate down --module billing --to 0')
  define<DownOptions>(down, async ({ cli, options, show }) => {
    const { to, module } = options
    const which = module === undefined ? 'all migrations' : `the migrations of ${module}`
    await confirm(cli, `Revert ${which} after ${to} and lose their data?`, options.yes)
    const answer = await (await openMigrations(cli)).down(to, module)
    show(answer, () =>
      answer.reverted.length === 0 ? ['nothing to revert'] : answer.reverted.map((name) => `reverted ${name}`),
    )
  })
}

function addStatus(migrate: Command, define: Define): void {
  const status = migrate.command('status').description('show applied and pending migrations')
  examples(status, 'carillon migrate status')
  define(status, async ({ cli, show }) => {
    const answer = await (await openMigrations(cli)).status()
    show(answer, () => [
      ...answer.applied.map(({ name }) => `applied  ${name}`),
      ...answer.pending.map((name) => `pending  ${name}`),
    ])
  })
}

async function openMigrations(cli: Cli) {
  const { migrationsOf } = await import('@carillon/server')
  return migrationsOf(await readServiceSettings(cli))
}

const STATUS_WIDTH = 'warning'.length

export function addDoctorCommand(program: Command, define: Define): void {
  const doctor = program
    .command('doctor')
    .description('check the database: schema, clock, time zones, workers, waiting runs, audit')
  examples(doctor, 'carillon doctor', 'DATABASE_URL=postgres://carillon@db/carillon carillon doctor --json')
  define(doctor, async ({ cli, show }) => {
    const { examine } = await import('@carillon/server')
    const checks = await examine(await readServiceSettings(cli))
    show({ checks }, () =>
      checks.map(({ name, status, message }) => {
        const state = styled(cli.terminal, styleOfState(status), padText(status, STATUS_WIDTH))
        return `${state}  ${name}: ${escapeControls(message)}`
      }),
    )
    return checks.some(({ status }) => status === 'failed') ? 'found' : 'ok'
  })
}
