import type { Secret } from '@carillon/api'
import { Option, type Command } from 'commander'

import { addPageOptions, notePage, pageQuery, type PageOptions } from '../options/page-options.ts'
import { tableLines } from '../output/table.ts'
import { escapeControls } from '../output/text.ts'
import { usageError } from '../process/cli-error.ts'
import type { Cli } from '../process/cli.ts'
import { confirm, readText } from '../process/input.ts'
import { connect } from '../service/connect.ts'
import { readServiceSettings } from '../service/run-service.ts'
import { examples, type Define } from './define.ts'

export function addSecretsCommand(program: Command, define: Define): void {
  const secrets = program.command('secrets').description('manage secrets that targets use')
  addList(secrets, define)
  addPut(secrets, define)
  addDeleteCommand(secrets, define)
  addRotate(secrets, define)
}

function addList(secrets: Command, define: Define): void {
  const list = secrets.command('list').description('list the names of secrets; values are never shown')
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

interface PutOptions {
  readonly valueFile?: string
  readonly value?: string
}

function addPut(secrets: Command, define: Define): void {
  const put = secrets
    .command('put')
    .description('store a secret; its value is read from standard input')
    .argument('<name>', 'name that schedules use for it')
    .option('--value-file <file>', 'read the value from a file instead')
    .addOption(
      new Option('--value <text>', 'the value itself; other users of this machine can see it').conflicts('valueFile'),
    )
  examples(
    put,
    'cat webhook-key.txt | carillon secrets put webhook-key',
    'carillon secrets put webhook-key --value-file webhook-key.txt',
  )
  define<PutOptions>(put, async ({ cli, args, options, show }) => {
    const secret = await connect(cli).secrets.put(args[0] ?? '', { value: await readValue(cli, options) })
    show(secret, () => [`secret ${secret.name} is stored as version ${secret.version}`])
  })
}

/** Reads the value of a secret. Removes one line break at the end, which an editor or `echo` adds. */
async function readValue(cli: Cli, { valueFile, value }: PutOptions): Promise<string> {
  if (value !== undefined) return value
  if (valueFile === undefined && cli.terminal.canAsk) {
    // A terminal would show the typed value and keep it on the screen.
    throw usageError('expected the value on standard input, got a terminal: use < file or --value-file')
  }
  return (await readText(valueFile ?? '-', cli)).replace(/\r?\n$/, '')
}

function addDeleteCommand(secrets: Command, define: Define): void {
  const remove = secrets
    .command('delete')
    .description('delete a secret; schedules that still use it fail')
    .argument('<name>', 'name of the secret')
    .option('--yes', 'do not ask for confirmation')
  examples(remove, 'carillon secrets delete webhook-key --yes')
  define<{ readonly yes?: boolean }>(remove, async ({ cli, args, options, show }) => {
    const [name = ''] = args
    await confirm(cli, `Delete the secret "${name}"?`, options.yes)
    await connect(cli).secrets.delete(name)
    show({ name, isDeleted: true }, () => [`secret ${name} is deleted`])
  })
}

/** Works on the database, not over the API: only the operator has the encryption keys. */
function addRotate(secrets: Command, define: Define): void {
  const rotate = secrets
    .command('rotate')
    .description('re-encrypt all secrets with the first key in CARILLON_SECRETS_KEY; needs the database')
  examples(rotate, 'CARILLON_SECRETS_KEY="$NEW,$OLD" carillon secrets rotate')
  define(rotate, async ({ cli, show }) => {
    const { rotateSecrets } = await import('@carillon/server')
    const { reencrypted, unreadable } = await rotateSecrets(await readServiceSettings(cli))
    const names = unreadable.map(({ tenantId, projectId, name }) => `${tenantId}/${projectId}/${name}`)
    show({ reencrypted, unreadable }, () => [
      `secrets re-encrypted with the first key: ${reencrypted}`,
      ...names.map((name) => `no key decrypts ${escapeControls(name)}: store it again`),
    ])
    return unreadable.length > 0 ? 'found' : 'ok'
  })
}
