import type { Tenant, TenantInput } from '@carillon/api'
import { InvalidArgumentError, Option, type Command } from 'commander'

import { dropUndefined, list, wholeNumber } from '../options/option-values.ts'
import { fieldLines } from '../output/table.ts'
import type { Screen } from '../output/terminal.ts'
import { usageError } from '../process/cli-error.ts'
import { connect } from '../service/connect.ts'
import { examples, type Define } from './define.ts'

export function addTenantsCommand(program: Command, define: Define): void {
  const tenants = program.command('tenants').description("show and set a tenant's limits")
  addGet(tenants, define)
  addSet(tenants, define)
}

function addGet(tenants: Command, define: Define): void {
  const get = tenants
    .command('get')
    .description("show a tenant's limits; another tenant than yours needs the admin key")
    .argument('<tenant>', 'id of the tenant')
  examples(get, 'carillon tenants get acme')
  define(get, async ({ cli, args, show }) => {
    const tenant = await connect(cli).tenants.get(args[0] ?? '')
    show(tenant, () => tenantFields(cli.terminal, tenant))
  })
}

type Limits = Omit<Tenant, 'tenant' | 'updatedBy' | 'updatedAt'>
/** The option value that stands for the installation's limit. It is not null, which commander takes for an option without a value. */
const DEFAULT = 'default'
type SetOptions = { readonly [Limit in keyof Limits]?: NonNullable<Limits[Limit]> | typeof DEFAULT }

function addSet(tenants: Command, define: Define): void {
  const count = (flags: string, description: string): Option =>
    new Option(flags, `${description}, or default`).argParser(countOrDefault)
  const set = tenants
    .command('set')
    .description("set a tenant's limits; limits that are not passed keep their values. Needs the admin key")
    .argument('<tenant>', 'id of the tenant')
    .addOption(count('--max-schedules-per-project <count>', 'schedules per project'))
    .addOption(count('--max-schedules-per-user <count>', 'schedules per user in a project'))
    .addOption(count('--minimum-seconds <count>', 'shortest time between two slots of a schedule'))
    .addOption(count('--requests-per-minute <count>', 'API requests per key'))
    .addOption(
      new Option(
        '--allowed-hosts <list>',
        'host patterns that HTTP targets may call, among those the installation allows; or none, or default',
      ).argParser(hostsOrDefault),
    )
  examples(
    set,
    'carillon tenants set acme --max-schedules-per-project 2000 --allowed-hosts "*.acme.example"',
    'carillon tenants set acme --requests-per-minute default',
  )
  define<SetOptions>(set, async ({ cli, args, options, show }) => {
    const [id = ''] = args
    const limits = readLimits(options)
    if (Object.keys(limits).length === 0) {
      throw usageError('expected a limit to set, got none', 'see `carillon tenants set --help`')
    }
    const client = connect(cli)
    const { tenant: _id, updatedBy: _by, updatedAt: _at, ...current } = await client.tenants.get(id)
    // The server replaces all limits, so this command sends the current ones again.
    const tenant = await client.tenants.put(id, { ...current, ...limits })
    show(tenant, () => tenantFields(cli.terminal, tenant))
  })
}

function countOrDefault(text: string): number | typeof DEFAULT {
  if (text === DEFAULT) return DEFAULT
  try {
    return wholeNumber(text)
  } catch {
    throw new InvalidArgumentError('expected a whole number, or default for the limit of the installation')
  }
}

function hostsOrDefault(text: string): readonly string[] | typeof DEFAULT {
  if (text === DEFAULT) return DEFAULT
  return text === 'none' ? [] : list(text)
}

/** The limits that the options set; `default` becomes null, which is the limit of the installation. */
function readLimits(options: SetOptions): TenantInput {
  return dropUndefined({
    maxSchedulesPerProject: nullIfDefault(options.maxSchedulesPerProject),
    maxSchedulesPerUser: nullIfDefault(options.maxSchedulesPerUser),
    minimumSeconds: nullIfDefault(options.minimumSeconds),
    requestsPerMinute: nullIfDefault(options.requestsPerMinute),
    allowedHosts: nullIfDefault(options.allowedHosts),
  } satisfies Record<keyof Limits, unknown>)
}

function nullIfDefault<Limit>(option: Limit | typeof DEFAULT): Limit | null {
  return option === DEFAULT ? null : option
}

function tenantFields(screen: Screen, tenant: Tenant): string[] {
  const inherited = 'default of the installation'
  const count = (limit: number | null): string => (limit === null ? inherited : String(limit))
  const { allowedHosts, updatedAt, updatedBy } = tenant
  return fieldLines(screen, [
    ['Tenant', tenant.tenant],
    ['Schedules per project', count(tenant.maxSchedulesPerProject)],
    ['Schedules per user', count(tenant.maxSchedulesPerUser)],
    ['Seconds between slots', count(tenant.minimumSeconds)],
    ['Requests per minute', count(tenant.requestsPerMinute)],
    ['Allowed hosts', allowedHosts === null ? inherited : allowedHosts.join(', ') || 'none'],
    ['Changed', updatedAt === null ? '' : `${updatedAt} by ${updatedBy ?? 'unknown'}`],
  ])
}
