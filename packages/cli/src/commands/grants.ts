import type { Grant } from '@carillon/api'
import { Option, type Command } from 'commander'

import { collected, dropUndefined, moment } from '../options/option-values.ts'
import { addPageOptions, notePage, pageQuery, type PageOptions } from '../options/page-options.ts'
import type { Style } from '../output/style.ts'
import { fieldLines, tableLines } from '../output/table.ts'
import type { Screen } from '../output/terminal.ts'
import { usageError } from '../process/cli-error.ts'
import { connect } from '../service/connect.ts'
import { examples, type Define } from './define.ts'

export function addGrantsCommand(program: Command, define: Define): void {
  const grants = program.command('grants').description('manage grants, which authorize schedules to run')
  addCreateCommand(grants, define)
  addList(grants, define)
  addGet(grants, define)
  addRenew(grants, define)
  addRevoke(grants, define)
}

interface CreateOptions {
  readonly scope: readonly string[]
  readonly subject?: string
  readonly billingAccount?: string
  readonly expiresAt?: string
}

function addCreateCommand(grants: Command, define: Define): void {
  const create = grants
    .command('create')
    .description('create a grant')
    .addOption(
      new Option('--scope <scope>', 'what it allows, such as http:dispatch:digest.internal; may be repeated')
        .argParser(collected)
        .makeOptionMandatory(),
    )
    .option('--subject <subject>', 'who it acts for, such as user:alice (default: you)')
    .option('--billing-account <id>', 'account that pays')
    .addOption(new Option('--expires-at <time>', 'when it expires (default: never)').argParser(moment))
  examples(
    create,
    'carillon grants create --scope "http:dispatch:*" --subject user:alice --expires-at 2027-01-01T00:00:00Z',
  )
  define<CreateOptions>(create, async ({ cli, options, show }) => {
    const { scope, subject, billingAccount, expiresAt } = options
    const grant = await connect(cli).grants.create({
      scopes: [...scope],
      ...dropUndefined({ subject, billingAccountId: billingAccount, expiresAt }),
    })
    show(grant, () => grantFields(cli.terminal, grant))
  })
}

function addList(grants: Command, define: Define): void {
  const list = grants.command('list').description('list grants, newest first')
  addPageOptions(list)
  examples(list, 'carillon grants list')
  define<PageOptions>(list, async ({ cli, options, show, note }) => {
    const page = await connect(cli).grants.list(pageQuery(options))
    show(page, () =>
      tableLines<Grant>(
        cli.terminal,
        [
          { title: 'SUBJECT', of: ({ subject }) => subject, shrinksTo: 12 },
          { title: 'SCOPES', of: ({ scopes }) => scopes.join(', '), shrinksTo: 16 },
          { title: 'EXPIRES', of: ({ expiresAt }) => expiresAt ?? 'never' },
          {
            title: 'WARNING',
            of: ({ warning }) => warningText(warning),
            style: ({ warning }) => WARNING_STYLES[warning ?? 'none'],
          },
          { title: 'SCHEDULE', of: ({ scheduleId }) => scheduleId ?? '-', style: () => 'dim' },
          { title: 'ID', of: ({ id }) => id, style: () => 'dim' },
        ],
        page.items,
      ),
    )
    notePage(page, note, 'no grants')
  })
}

function addGet(grants: Command, define: Define): void {
  const get = grants.command('get').description('show a grant').argument('<id>', 'id of the grant')
  examples(get, 'carillon grants get 01995c0e-0000-7000-8000-000000000001')
  define(get, async ({ cli, args, show }) => {
    const grant = await connect(cli).grants.get(args[0] ?? '')
    show(grant, () => grantFields(cli.terminal, grant))
  })
}

interface RenewOptions {
  readonly expiresAt?: string
  readonly forEver?: boolean
}

function addRenew(grants: Command, define: Define): void {
  const renew = grants
    .command('renew')
    .description('change when a grant expires; works for an expired grant too')
    .argument('<id>', 'id of the grant')
    .addOption(new Option('--expires-at <time>', 'when it expires').argParser(moment))
    .addOption(new Option('--for-ever', 'it never expires').conflicts('expiresAt'))
  examples(renew, 'carillon grants renew 01995c0e-0000-7000-8000-000000000001 --expires-at 2027-01-01T00:00:00Z')
  define<RenewOptions>(renew, async ({ cli, args, options, show }) => {
    const { expiresAt, forEver } = options
    if (expiresAt === undefined && forEver !== true) {
      throw usageError('expected --expires-at or --for-ever, got neither')
    }
    const grant = await connect(cli).grants.renew(args[0] ?? '', { expiresAt: expiresAt ?? null })
    const expiry = grant.expiresAt === null ? 'never expires' : `expires at ${grant.expiresAt}`
    show(grant, () => [`grant ${grant.id} of ${grant.subject} ${expiry}`])
  })
}

function addRevoke(grants: Command, define: Define): void {
  const revoke = grants
    .command('revoke')
    .description('revoke a grant: from now on the schedules that use it skip their slots')
    .argument('<id>', 'id of the grant')
  examples(revoke, 'carillon grants revoke 01995c0e-0000-7000-8000-000000000001')
  define(revoke, async ({ cli, args, show }) => {
    const grant = await connect(cli).grants.revoke(args[0] ?? '')
    show(grant, () => [`grant ${grant.id} of ${grant.subject} is revoked`])
  })
}

function grantFields(screen: Screen, grant: Grant): string[] {
  return fieldLines(screen, [
    ['Id', grant.id],
    ['Subject', grant.subject],
    ['Scopes', grant.scopes.join(', ')],
    ['Billing account', grant.billingAccountId ?? ''],
    ['Schedule', grant.scheduleId === null ? '' : `${grant.scheduleId} (only this schedule uses it)`],
    ['Expires', grant.expiresAt ?? 'never'],
    ['Warning', grant.warning === null ? '' : warningText(grant.warning)],
    ['Revoked', grant.revokedAt === null ? '' : `${grant.revokedAt} by ${grant.revokedBy ?? 'unknown'}`],
  ])
}

const WARNING_STYLES: Readonly<Record<NonNullable<Grant['warning']> | 'none', Style | undefined>> = {
  expires_soon: 'yellow',
  expired: 'red',
  revoked: 'red',
  none: undefined,
}

function warningText(warning: Grant['warning']): string {
  return warning === null ? '-' : warning.replace('_', ' ')
}
