import type { Secret } from '@carillon/api'
import { Option, type Command } from 'commander'

import { usageError } from '../cli-error.ts'
import type { Cli } from '../cli.ts'
import { confirm } from '../confirm.ts'
import { connect } from '../connection.ts'
import { examples, type Define } from '../define.ts'
import { harmlessText } from '../output/harmless-text.ts'
import { tableLines } from '../output/table.ts'
import { addPageOptions, notePage, pageQuery, type PageOptions } from '../page-options.ts'
import { readText } from '../read-text.ts'
import { settingsFlags } from '../run-service.ts'

interface PutOptions {
  readonly valueFile?: string
  readonly value?: string
}

export function addSecrets(program: Command, define: Define): void {
  const secrets = program.command('secrets').description('keep what targets prove by who calls')
  addList(secrets, define)

  const put = secrets
    .command('put')
    .description('keep a secret; its value is read from standard input')
    .argument('<name>', 'what schedules refer to it by')
    .option('--value-file <file>', 'read the value from a file instead')
    .addOption(
      new Option('--value <text>', 'the value itself; others on this machine can see it').conflicts('valueFile'),
    )
  examples(
    put,
    'cat webhook-key.txt | carillon secrets put webhook-key',
    'carillon secrets put webhook-key --value-file webhook-key.txt',
  )
  define<PutOptions>(put, async ({ cli, args, options, show }) => {
    const secret = await connect(cli).secrets.put(args[0] ?? '', { value: await readValue(cli, options) })
    show(secret, () => [`the secret ${secret.name} is kept, as version ${secret.version}`])
  })

  const remove = secrets
    .command('delete')
    .description('delete a secret; attempts of schedules that still refer to it fail')
    .argument('<name>', 'its name')
    .option('--yes', 'do not ask')
  examples(remove, 'carillon secrets delete webhook-key --yes')
  define<{ readonly yes?: boolean }>(remove, async ({ cli, args, options, show }) => {
    const [name = ''] = args
    await confirm(cli, `Delete the secret "${name}"?`, options.yes)
    await connect(cli).secrets.delete(name)
    show({ name, isDeleted: true }, () => [`the secret ${name} is deleted`])
  })
  addRotate(secrets, define)
}

/** Not over the API: the keys of the installation are its operator's, and so is the database. */
function addRotate(secrets: Command, define: Define): void {
  const rotate = secrets
    .command('rotate')
    .description('encrypt all secrets with the first key of CARILLON_SECRETS_KEY; needs the database')
  examples(rotate, 'CARILLON_SECRETS_KEY="$NEW,$OLD" carillon secrets rotate')
  define(rotate, async ({ cli, show }) => {
    const { readSettings, rotateSecrets } = await import('@carillon/server')
    const { reencrypted, unreadable } = await rotateSecrets(readSettings(cli.env, settingsFlags({}, cli)))
    const names = unreadable.map(({ tenantId, projectId, name }) => `${tenantId}/${projectId}/${name}`)
    show({ reencrypted, unreadable }, () => [
      `${reencrypted} secrets are encrypted with the new key`,
      ...names.map((name) => `none of the keys opens ${harmlessText(name)}: put it again`),
    ])
    return unreadable.length > 0 ? 'found' : 'ok'
  })
}

/** Without the end of its last line, which an editor or `echo` adds. */
async function readValue(cli: Cli, { valueFile, value }: PutOptions): Promise<string> {
  if (value !== undefined) return value
  if (valueFile === undefined && cli.terminal.canAsk) {
    // What is typed here would be shown, and stay on the screen.
    throw usageError('expected the value on standard input, got a terminal: pass it with < file, or --value-file')
  }
  return (await readText(valueFile ?? '-', cli)).replace(/\r?\n$/, '')
}

function addList(secrets: Command, define: Define): void {
  const list = secrets.command('list').description('list secrets by name, never their values')
  addPageOptions(list)
  examples(list, 'carillon secrets list')
  define<PageOptions>(list, async ({ cli, options, show, note }) => {
    const page = await connect(cli).secrets.list(pageQuery(options))
    show(page, () =>
      tableLines<Secret>(
        cli.terminal,
        [
          { title: 'NAME', of: ({ name }) => name, shrinksTo: 12 },
          { title: 'VERSION', of: ({ version }) => String(version) },
          { title: 'CHANGED', of: ({ updatedAt }) => updatedAt },
          { title: 'BY', of: ({ updatedBy }) => updatedBy, shrinksTo: 12 },
        ],
        page.items,
      ),
    )
    notePage(page, note, 'no secrets')
  })
}
