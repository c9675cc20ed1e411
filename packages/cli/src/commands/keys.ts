import type { ApiKey, KeyInput } from '@carillon/api'
import { Option, type Command } from 'commander'

import { connect } from '../connection.ts'
import { examples, type Define } from '../define.ts'
import { fieldLines, tableLines } from '../output/table.ts'
import { addPageOptions, notePage, pageQuery, type PageOptions } from '../page-options.ts'

export function addKeys(program: Command, define: Define): void {
  const keys = program.command('keys').description('make, list and revoke API keys')
  const create = keys
    .command('create')
    .description('make a key; it is shown this once')
    .requiredOption('--project <id>', 'the project it works in')
    .requiredOption('--subject <subject>', 'in whose name, such as user:alice')
    .addOption(
      new Option('--role <role>', 'a member reads, an admin also changes')
        .choices(['member', 'admin'])
        .default('member'),
    )
    .option('--tenant <id>', 'the tenant of the project (yours); of another with the key of the installation')
  examples(create, 'carillon keys create --project default --subject user:alice --role admin')
  define<KeyInput>(create, async ({ cli, options, show, note }) => {
    const { project, subject, role, tenant } = options
    const made = await connect(cli).keys.create({ project, subject, role, ...(tenant === undefined ? {} : { tenant }) })
    show(made, () =>
      fieldLines(cli.terminal, [
        ['Key', made.key],
        ['Id', made.id],
        ['Role', made.role],
        ['Subject', made.subject],
        ['Tenant', made.tenant],
        ['Project', made.project],
      ]),
    )
    note('the key is not kept anywhere: store it now')
  })
  addList(keys, define)

  const revoke = keys.command('revoke').description('revoke a key').argument('<id>', 'its id, not the key itself')
  addPlaceOptions(revoke)
  examples(revoke, 'carillon keys revoke 01995c0e-0000-7000-8000-000000000001')
  define<KeyPlace>(revoke, async ({ cli, args, options, show }) => {
    const revoked = await connect(cli).keys.revoke(args[0] ?? '', placeQuery(options))
    show(revoked, () => [`the key ${revoked.prefix}… of ${revoked.subject} is revoked`])
  })
}

interface KeyPlace {
  readonly tenant?: string
  readonly project?: string
}

function addPlaceOptions(command: Command): void {
  command
    .option('--project <id>', 'of another project; for the key of the installation')
    .option('--tenant <id>', 'of another tenant; likewise')
}

function placeQuery({ tenant, project }: KeyPlace): KeyPlace {
  return { ...(tenant === undefined ? {} : { tenant }), ...(project === undefined ? {} : { project }) }
}

function addList(keys: Command, define: Define): void {
  const list = keys.command('list').description('list the keys of the project, the newest first')
  addPlaceOptions(list)
  addPageOptions(list)
  examples(list, 'carillon keys list', 'carillon keys list --project garden')
  define<PageOptions & KeyPlace>(list, async ({ cli, options, show, note }) => {
    const page = await connect(cli).keys.list({ ...placeQuery(options), ...pageQuery(options) })
    show(page, () =>
      tableLines<ApiKey>(
        cli.terminal,
        [
          { title: 'KEY', of: ({ prefix }) => `${prefix}…` },
          { title: 'SUBJECT', of: ({ subject }) => subject, shrinksTo: 12 },
          { title: 'ROLE', of: ({ role }) => role },
          { title: 'CREATED', of: ({ createdAt }) => createdAt },
          { title: 'REVOKED', of: ({ revokedAt }) => revokedAt ?? '-' },
          { title: 'ID', of: ({ id }) => id, style: () => 'dim' },
        ],
        page.items,
      ),
    )
    notePage(page, note, 'no keys but that of the installation')
  })
}
