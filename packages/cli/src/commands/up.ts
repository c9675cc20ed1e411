import { join } from 'node:path'

import { ADMIN_KEY_FILE, API_PREFIX, SERVICE_DEFAULTS } from '@carillon/api'
import type { RunningCarillon, Settings } from '@carillon/server'
import { Option, type Command } from 'commander'

import { wholeNumber } from '../options/option-values.ts'
import { styled } from '../output/style.ts'
import { fieldLines } from '../output/table.ts'
import type { Cli } from '../process/cli.ts'
import { watchParent } from '../process/interrupts.ts'
import { VERSION } from '../process/version.ts'
import { serviceUrl } from '../service/connect.ts'
import { readServiceSettings, runService, shortPath, type AddressOptions } from '../service/run-service.ts'
import { examples, type Define } from './define.ts'
import { addAddressOptions } from './server-and-worker.ts'

interface UpOptions extends AddressOptions {
  readonly parent?: number
}

export function addUpCommand(program: Command, define: Define): void {
  const up = addAddressOptions(
    program.command('up').description('run everything in one process: database, API and worker'),
  )
    .option('--data-dir <path>', `data directory (default: CARILLON_DATA_DIR or ${SERVICE_DEFAULTS.dataDir})`)
    // For `npm start`: a signal that kills npm does not reach the processes that npm started.
    .addOption(new Option('--parent <pid>', 'stop when this process ends').argParser(wholeNumber))
  examples(up, 'carillon up', 'carillon up --port 8400 --data-dir /var/lib/carillon')
  define<UpOptions>(up, async ({ cli: outer, options, isJson }) => {
    const { startEverything } = await import('@carillon/server')
    const cli = withParent(outer, options)
    const settings = await readServiceSettings(cli, options)
    await runService({
      cli,
      isJson,
      start: (start) => startEverything(settings, start),
      lines: (service) => greeting(cli, settings, service),
    })
  })
}

/** Returns a `Cli` whose signal also aborts when the parent process ends. */
function withParent(cli: Cli, { parent }: UpOptions): Cli {
  return parent === undefined ? cli : { ...cli, signal: AbortSignal.any([cli.signal, watchParent(parent, cli.clock)]) }
}

function greeting(cli: Cli, settings: Settings, service: RunningCarillon): string[] {
  const { terminal } = cli
  const { url, signInUrl } = service
  const fields = fieldLines(terminal, [
    ['API', `${url}${API_PREFIX}`],
    ['Docs', `${url}/docs`],
    ['Sign in', signInUrl === null ? '' : `${signInUrl} (works once)`],
    ['Data', dataText(cli, settings, service)],
    ['Key', keyText(cli, settings)],
    ['Postgres', postgresText(service)],
  ])
  return [
    styled(terminal, 'bold', `Carillon ${VERSION}`),
    '',
    ...fields.map((line) => `  ${line}`),
    '',
    'Try this next, in another shell in this folder:',
    '',
    `  ${nextCommand(cli, settings, service)}`,
    '',
  ]
}

function dataText({ cwd }: Cli, { databaseUrl }: Settings, { dataDir, isFirstStart }: RunningCarillon): string {
  const location = databaseUrl === null ? shortPath(cwd, dataDir ?? '') : 'the Postgres in DATABASE_URL'
  return `${location} (${isFirstStart ? 'new' : 'from an earlier start'})`
}

function keyText({ cwd }: Cli, { adminKey, dataDir }: Settings): string {
  return adminKey === null ? shortPath(cwd, join(dataDir, ADMIN_KEY_FILE)) : 'the value of CARILLON_ADMIN_KEY'
}

/** Says that Postgres runs from a copy of its program, and why; empty if it does not. */
function postgresText({ copiedProgram }: RunningCarillon): string {
  return copiedProgram === null
    ? ''
    : `runs from ${copiedProgram.folder} until it stops, because ${copiedProgram.reason}`
}

/** A command that the user can run in another shell as it is: it sets the variables that differ from their defaults. */
function nextCommand({ env, cwd }: Cli, { adminKey, dataDir }: Settings, { url }: RunningCarillon): string {
  const isDefaultDir = adminKey === null && dataDir === join(cwd, SERVICE_DEFAULTS.dataDir)
  const variables = [
    ...(adminKey !== null && (env['CARILLON_ADMIN_KEY'] ?? '') !== ''
      ? ['CARILLON_API_KEY="$CARILLON_ADMIN_KEY"']
      : []),
    ...(adminKey !== null || isDefaultDir ? [] : [`CARILLON_DATA_DIR=${quoteForShell(shortPath(cwd, dataDir))}`]),
    ...(url === serviceUrl({}) ? [] : [`CARILLON_URL=${url}`]),
  ]
  const create = `schedules create "First light" --in 5s --url ${url}/healthz --method GET`
  return [...variables, 'npx carillon', create].join(' ')
}

function quoteForShell(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`
}
