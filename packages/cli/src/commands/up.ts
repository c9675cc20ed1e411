import { join } from 'node:path'

import type { RunningService, Settings } from '@carillon/server'
import { Option, type Command } from 'commander'

import type { Cli } from '../cli.ts'
import { DATA_DIR_DEFAULT, serviceUrl } from '../connection.ts'
import { examples, type Define } from '../define.ts'
import { watchParent } from '../interrupts.ts'
import { wholeNumber } from '../option-values.ts'
import { styled } from '../output/style.ts'
import { fieldLines } from '../output/table.ts'
import { pathFrom, runService, settingsFlags, type AddressOptions } from '../run-service.ts'
import { VERSION } from '../version.ts'

export function addUp(program: Command, define: Define): void {
  const up = program
    .command('up')
    .description('run everything in one process: database, API and worker')
    .addOption(new Option('--port <port>', 'where it listens (CARILLON_PORT, 7400)').argParser(wholeNumber))
    .option('--host <address>', 'on which address (CARILLON_HOST, 127.0.0.1)')
    .option('--data-dir <path>', 'where the data lives (CARILLON_DATA_DIR, .carillon)')
    // For `npm start`: a signal that kills npm does not reach what it started.
    .addOption(new Option('--parent <pid>', 'stop once this process has ended').argParser(wholeNumber))
  examples(up, 'carillon up', 'carillon up --port 8400 --data-dir /var/lib/carillon')
  define<UpOptions>(up, async (invocation) => {
    const { readSettings, startEverything } = await import('@carillon/server')
    const { options } = invocation
    const cli = whileParentLives(invocation.cli, options)
    const settings = readSettings(cli.env, settingsFlags(options, cli))
    return runService(
      { ...invocation, cli },
      (start) => startEverything(settings, start),
      (service) => greeting(cli, settings, service),
    )
  })
}

interface UpOptions extends AddressOptions {
  readonly parent?: number
}

function whileParentLives(cli: Cli, { parent }: UpOptions): Cli {
  return parent === undefined ? cli : { ...cli, signal: AbortSignal.any([cli.signal, watchParent(parent, cli.clock)]) }
}

function greeting(cli: Cli, settings: Settings, service: RunningService): string[] {
  const { terminal } = cli
  const { url, signInUrl } = service
  const key = keyText(cli, settings)
  const fields = fieldLines(terminal, [
    ['API', `${url}/api/v1`],
    ['Docs', `${url}/docs`],
    ['Sign in', signInUrl === null ? '' : `${signInUrl} (works once)`],
    ['Data', dataText(cli, settings, service)],
    ['Key', key],
    ['Postgres', programText(service)],
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

function dataText({ cwd }: Cli, { databaseUrl }: Settings, { dataDir, isFirstStart }: RunningService): string {
  const place = databaseUrl === null ? pathFrom(cwd, dataDir ?? '') : 'the Postgres of DATABASE_URL'
  return `${place} (${isFirstStart ? 'new' : 'as the last start left it'})`
}

/** Said only if it is not as one would expect. */
function programText({ copiedProgram }: RunningService): string {
  return copiedProgram === null
    ? ''
    : `runs from ${copiedProgram.folder} until it stops, because ${copiedProgram.reason}`
}

function keyText({ cwd }: Cli, { adminKey, dataDir }: Settings): string {
  return adminKey === null ? pathFrom(cwd, join(dataDir, 'admin.key')) : 'the one in CARILLON_ADMIN_KEY'
}

/** For a shell. */
function quoted(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`
}

/** Works as it is: names what another shell in this folder could not guess. */
function nextCommand({ env, cwd }: Cli, { adminKey, dataDir }: Settings, { url }: RunningService): string {
  const isGuessed = adminKey === null && dataDir === join(cwd, DATA_DIR_DEFAULT)
  const variables = [
    ...(adminKey !== null && (env['CARILLON_ADMIN_KEY'] ?? '') !== ''
      ? ['CARILLON_API_KEY="$CARILLON_ADMIN_KEY"']
      : []),
    ...(adminKey !== null || isGuessed ? [] : [`CARILLON_DATA_DIR=${quoted(pathFrom(cwd, dataDir))}`]),
    ...(url === serviceUrl({}) ? [] : [`CARILLON_URL=${url}`]),
  ]
  const create = `schedules create "First light" --in 5s --url ${url}/healthz --method GET`
  return [...variables, 'npx carillon', create].join(' ')
}
