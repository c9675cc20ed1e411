import { Option, type Command } from 'commander'

import type { Cli } from '../cli.ts'
import { confirm } from '../confirm.ts'
import { examples, type Define } from '../define.ts'
import { wholeNumber } from '../option-values.ts'
import { settingsFlags } from '../run-service.ts'

export function addMigrate(program: Command, define: Define): void {
  const migrate = program.command('migrate').description('bring the schema of the database up to this version, or back')
  const up = migrate.command('up').description('apply what is missing')
  examples(up, 'carillon migrate up')
  define(up, async ({ cli, show }) => {
    const answer = await (await migrations(cli)).up()
    show(answer, () =>
      answer.applied.length === 0 ? ['nothing to apply'] : answer.applied.map((name) => `applied ${name}`),
    )
  })

  const down = migrate
    .command('down')
    .description('take back every migration above a number; what they hold is lost')
    .addOption(
      new Option('--to <number>', 'the last that stays; 0 takes everything')
        .argParser(wholeNumber)
        .makeOptionMandatory(),
    )
    .option('--yes', 'do not ask')
  examples(down, 'carillon migrate down --to 1')
  define<{ readonly to: number; readonly yes?: boolean }>(down, async ({ cli, options, show }) => {
    await confirm(cli, `Take back every migration above ${options.to}, with what it holds?`, options.yes)
    const answer = await (await migrations(cli)).down(options.to)
    show(answer, () =>
      answer.reverted.length === 0 ? ['nothing to take back'] : answer.reverted.map((name) => `took back ${name}`),
    )
  })

  const status = migrate.command('status').description('show what is applied and what is missing')
  examples(status, 'carillon migrate status')
  define(status, async ({ cli, show }) => {
    const answer = await (await migrations(cli)).status()
    show(answer, () => [
      ...answer.applied.map(({ name }) => `applied  ${name}`),
      ...answer.pending.map((name) => `missing  ${name}`),
    ])
  })
}

async function migrations(cli: Cli) {
  const { migrationsOf, readSettings } = await import('@carillon/server')
  return migrationsOf(readSettings(cli.env, settingsFlags({}, cli)))
}
