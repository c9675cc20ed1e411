import type { Tenant, TenantInput } from '@carillon/api'
import { InvalidArgumentError, Option, type Command } from 'commander'

import { usageError } from '../cli-error.ts'
import { connect } from '../connection.ts'
import { examples, type Define } from '../define.ts'
import { list, wholeNumber } from '../option-values.ts'
import { fieldLines } from '../output/table.ts'
import type { Terminal } from '../output/terminal.ts'

type Limits = Omit<Tenant, 'tenant' | 'updatedBy' | 'updatedAt'>
/** What the installation says. Not null, which commander takes for an option without a value. */
const DEFAULT = 'default'
type SetOptions = { readonly [Limit in keyof Limits]?: NonNullable<Limits[Limit]> | typeof DEFAULT }

const LIMITS = [
  'maxSchedulesPerProject',
  'maxSchedulesPerUser',
  'minimumSeconds',
  'requestsPerMinute',
  'allowedHosts',
] as const satisfies (keyof Limits)[]

export function addTenants(program: Command, define: Define): void {
  const tenants = program.command('tenants').description('see and say what a tenant may have')
  const get = tenants
    .command('get')
    .description('show what a tenant may have; of another than your own with the key of the installation')
    .argument('<tenant>', 'its id')
  examples(get, 'carillon tenants get acme')
  define(get, async ({ cli, args, show }) => {
    const tenant = await connect(cli).tenants.get(args[0] ?? '')
    show(tenant, () => tenantFields(cli.terminal, tenant))
  })

  const set = tenants
    .command('set')
    .description('say what a tenant may have; what is not named stays. With the key of the installation')
    .argument('<tenant>', 'its id')
  addLimits(set)
  examples(
    set,
    'carillon tenants set acme --max-schedules-per-project 2000 --allowed-hosts "*.acme.example"',
    'carillon tenants set acme --requests-per-minute default',
  )
  define<SetOptions>(set, async ({ cli, args, options, show }) => {
    const [id = ''] = args
    if (LIMITS.every((limit) => options[limit] === undefined)) {
      throw usageError('expected something to say of the tenant, got nothing', 'see `carillon tenants set --help`')
    }
    const { tenants: asked } = connect(cli)
    const tenant = await asked.put(id, changed(await asked.get(id), options))
    show(tenant, () => tenantFields(cli.terminal, tenant))
  })
}

function addLimits(command: Command): void {
  const limit = (flags: string, description: string): Option => new Option(flags, description).argParser(countOrDefault)
  command
    .addOption(limit('--max-schedules-per-project <count>', 'how many a project may have; or default'))
    .addOption(limit('--max-schedules-per-user <count>', 'how many of them one user; or default'))
    .addOption(limit('--minimum-seconds <count>', 'the least between two slots; or default'))
    .addOption(limit('--requests-per-minute <count>', 'of each key; or default'))
    .addOption(
      new Option(
        '--allowed-hosts <list>',
        'host patterns that HTTP targets may reach, within those of the installation; or none, or default',
      ).argParser(hostsOrDefault),
    )
}

function countOrDefault(text: string): number | typeof DEFAULT {
  if (text === DEFAULT) return DEFAULT
  try {
    return wholeNumber(text)
  } catch {
    throw new InvalidArgumentError('expected a whole number, or default for what the installation says')
  }
}

function hostsOrDefault(text: string): readonly string[] | typeof DEFAULT {
  if (text === DEFAULT) return DEFAULT
  return text === 'none' ? [] : list(text)
}

/** The service replaces all that was said, so what is not named is said again. */
function changed(tenant: Tenant, options: SetOptions): TenantInput {
  const said = LIMITS.map((limit) => {
    const option = options[limit]
    return [limit, option === undefined ? tenant[limit] : option === DEFAULT ? null : option]
  })
  // By its names; each value is of its own limit.
  return Object.fromEntries(said) as TenantInput
}

function tenantFields(screen: Terminal, tenant: Tenant): string[] {
  const count = (limit: number | null): string => (limit === null ? 'as the installation says' : String(limit))
  const { allowedHosts, updatedAt, updatedBy } = tenant
  return fieldLines(screen, [
    ['Tenant', tenant.tenant],
    ['Schedules per project', count(tenant.maxSchedulesPerProject)],
    ['Schedules per user', count(tenant.maxSchedulesPerUser)],
    ['Seconds between slots', count(tenant.minimumSeconds)],
    ['Requests per minute', count(tenant.requestsPerMinute)],
    ['Hosts', allowedHosts === null ? 'as the installation says' : allowedHosts.join(', ') || 'none'],
    ['Changed', updatedAt === null ? '' : `${updatedAt} by ${updatedBy ?? 'nobody'}`],
  ])
}
