import type { Grant } from '@carillon/api'
import { Option, type Command } from 'commander'

import { usageError } from '../cli-error.ts'
import { connect } from '../connection.ts'
import { examples, type Define } from '../define.ts'
import { collected, moment } from '../option-values.ts'
import type { Style } from '../output/style.ts'
import { fieldLines, tableLines } from '../output/table.ts'
import type { Terminal } from '../output/terminal.ts'
import { addPageOptions, notePage, pageQuery, type PageOptions } from '../page-options.ts'

interface CreateOptions {
  readonly scope: readonly string[]
  readonly subject?: string
  readonly billingAccount?: string
  readonly expiresAt?: string
}

export function addGrants(program: Command, define: Define): void {
  const grants = program.command('grants').description('give, list, renew and revoke rights to execute')
  const create = grants
    .command('create')
    .description('give a right to execute')
    .addOption(
      new Option('--scope <scope>', 'what it covers, such as http:dispatch:digest.internal; may be repeated')
        .argParser(collected)
        .makeOptionMandatory(),
    )
    .option('--subject <subject>', 'in whose name, such as user:alice (yours)')
    .option('--billing-account <id>', 'who pays')
    .addOption(new Option('--expires-at <instant>', 'until when (for ever)').argParser(moment))
  examples(
    create,
    'carillon grants create --scope "http:dispatch:*" --subject user:alice --expires-at 2027-01-01T00:00:00Z',
  )
  define<CreateOptions>(create, async ({ cli, options, show }) => {
    const { scope, subject, billingAccount, expiresAt } = options
    const grant = await connect(cli).grants.create({
      scopes: [...scope],
      ...(subject === undefined ? {} : { subject }),
      ...(billingAccount === undefined ? {} : { billingAccountId: billingAccount }),
      ...(expiresAt === undefined ? {} : { expiresAt }),
    })
    show(grant, () => grantFields(cli.terminal, grant))
  })
  addList(grants, define)
  addGet(grants, define)
  addRenew(grants, define)

  const revoke = grants
    .command('revoke')
    .description('revoke a grant: slots that come due by it are skipped from now on')
    .argument('<id>', 'its id')
  examples(revoke, 'carillon grants revoke 01995c0e-0000-7000-8000-000000000001')
  define(revoke, async ({ cli, args, show }) => {
    const grant = await connect(cli).grants.revoke(args[0] ?? '')
    show(grant, () => [`the grant ${grant.id} of ${grant.subject} is revoked`])
  })
}

function addGet(grants: Command, define: Define): void {
  const get = grants.command('get').description('show a grant').argument('<id>', 'its id')
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
    .description('let a grant last until another instant, also one that has expired')
    .argument('<id>', 'its id')
    .addOption(new Option('--expires-at <instant>', 'until when').argParser(moment))
    .addOption(new Option('--for-ever', 'without end').conflicts('expiresAt'))
  examples(renew, 'carillon grants renew 01995c0e-0000-7000-8000-000000000001 --expires-at 2027-01-01T00:00:00Z')
  define<RenewOptions>(renew, async ({ cli, args, options, show }) => {
    const { expiresAt, forEver } = options
    if (expiresAt === undefined && forEver !== true) {
      throw usageError('expected --expires-at or --for-ever, got neither')
    }
    const grant = await connect(cli).grants.renew(args[0] ?? '', { expiresAt: expiresAt ?? null })
    show(grant, () => [`the grant ${grant.id} of ${grant.subject} lasts ${untilText(grant)}`])
  })
}

function addList(grants: Command, define: Define): void {
  const list = grants.command('list').description('list grants, the newest first')
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

function grantFields(screen: Terminal, grant: Grant): string[] {
  return fieldLines(screen, [
    ['Id', grant.id],
    ['Subject', grant.subject],
    ['Scopes', grant.scopes.join(', ')],
    ['Pays', grant.billingAccountId ?? ''],
    ['Schedule', grant.scheduleId === null ? '' : `${grant.scheduleId}, which alone acts by it`],
    ['Expires', grant.expiresAt ?? 'never'],
    ['Warning', grant.warning === null ? '' : warningText(grant.warning)],
    ['Revoked', grant.revokedAt === null ? '' : `${grant.revokedAt} by ${grant.revokedBy ?? 'nobody'}`],
  ])
}

function untilText({ expiresAt }: Grant): string {
  return expiresAt === null ? 'for ever' : `until ${expiresAt}`
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
