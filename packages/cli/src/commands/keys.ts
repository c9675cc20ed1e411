import { ROLES, type ApiKey, type KeyInput } from '@carillon/api'
import { Option, type Command } from 'commander'

import { dropUndefined } from '../options/option-values.ts'
import { addPageOptions, notePage, pageQuery, type PageOptions } from '../options/page-options.ts'
import { fieldLines, tableLines } from '../output/table.ts'
import { connect } from '../service/connect.ts'
import { examples, type Define } from './define.ts'

export function addKeysCommand(program: Command, define: Define): void {
  const keys = program.command('keys').description('create, list and revoke API keys')
  addCreateCommand(keys, define)
  addList(keys, define)
  addRevoke(keys, define)
}

function addCreateCommand(keys: Command, define: Define): void {
  const create = keys
    .command('create')
    .description('create an API key; it is shown only once')
    .requiredOption('--project <id>', 'project that the key gives access to')
    .requiredOption('--subject <subject>', 'who uses it, such as user:alice')
    .addOption(
      new Option('--role <role>', 'a member can read, an admin can also change').choices(ROLES).default('member'),
    )
    .option('--tenant <id>', 'tenant of the project (default: yours); another one needs the admin key')
  examples(create, 'carillon keys create --project default --subject user:alice --role admin')
  define<KeyInput>(create, async ({ cli, options, show, note }) => {
    const { project, subject, role, tenant } = options
    const created = await connect(cli).keys.create({ project, subject, role, ...dropUndefined({ tenant }) })
    show(created, () =>
      fieldLines(cli.terminal, [
        ['Key', created.key],
        ['Id', created.id],
        ['Role', created.role],
        ['Subject', created.subject],
        ['Tenant', created.tenant],
        ['Project', created.project],
      ]),
    )
    note('save the key now: it cannot be shown again')
  })
}

interface ScopeOptions {
  readonly tenant?: string
  readonly project?: string
}

function addScopeOptions(command: Command): void {
  command
    .option('--project <id>', 'another project; needs the admin key')
    .option('--tenant <id>', 'another tenant; needs the admin key')
}

function addList(keys: Command, define: Define): void {
  const list = keys.command('list').description('list the API keys of the project, newest first')
  addScopeOptions(list)
  addPageOptions(list)
  examples(list, 'carillon keys list', 'carillon keys list --project garden')
  define<PageOptions & ScopeOptions>(list, async ({ cli, options, show, note }) => {
    const { tenant, project } = options
    const page = await connect(cli).keys.list({ ...dropUndefined({ tenant, project }), ...pageQuery(options) })
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
    notePage(page, note, 'no keys besides the admin key')
  })
}

function addRevoke(keys: Command, define: Define): void {
  const revoke = keys.command('revoke').description('revoke an API key').argument('<id>', 'id of the key, not the key')
  addScopeOptions(revoke)
  examples(revoke, 'carillon keys revoke 01995c0e-0000-7000-8000-000000000001')
  define<ScopeOptions>(revoke, async ({ cli, args, options, show }) => {
    const { tenant, project } = options
    const revoked = await connect(cli).keys.revoke(args[0] ?? '', dropUndefined({ tenant, project }))
    show(revoked, () => [`key ${revoked.prefix}… of ${revoked.subject} is revoked`])
  })
}
