import { API_PREFIX, SERVICE_DEFAULTS } from '@carillon/api'
import { Option, type Command } from 'commander'

import { dropUndefined, list, wholeNumber } from '../options/option-values.ts'
import { fieldLines } from '../output/table.ts'
import { readServiceSettings, runService, type AddressOptions } from '../service/run-service.ts'
import { examples, type Define } from './define.ts'

const { host: HOST, port: PORT, metricsPort: METRICS_PORT } = SERVICE_DEFAULTS

/** Adds the options for the address of the API. */
export function addAddressOptions(command: Command): Command {
  return command
    .addOption(new Option('--port <port>', `port (default: CARILLON_PORT or ${PORT})`).argParser(wholeNumber))
    .option('--host <address>', `address to listen on (default: CARILLON_HOST or ${HOST})`)
}

export function addServerCommand(program: Command, define: Define): void {
  const server = addAddressOptions(
    program.command('server').description('run only the API, on the Postgres in DATABASE_URL'),
  )
  examples(server, 'DATABASE_URL=postgres://carillon@db/carillon carillon server --host 0.0.0.0')
  define<AddressOptions>(server, async ({ cli, options, isJson }) => {
    const { startServer } = await import('@carillon/server')
    const settings = await readServiceSettings(cli, options)
    await runService({
      cli,
      isJson,
      start: (start) => startServer(settings, start),
      lines: ({ url }) =>
        fieldLines(cli.terminal, [
          ['API', `${url}${API_PREFIX}`],
          ['Docs', `${url}/docs`],
        ]),
    })
  })
}

interface WorkerOptions extends AddressOptions {
  readonly targets: readonly string[]
  readonly concurrency?: number
  readonly name?: string
  readonly metricsPort?: number
}

export function addWorkerCommand(program: Command, define: Define): void {
  const worker = program
    .command('worker')
    .description('run due slots, on the Postgres in DATABASE_URL')
    .addOption(new Option('--targets <kinds>', 'kinds of targets to run').argParser(list).default(['http'], 'http'))
    .addOption(new Option('--concurrency <count>', 'number of concurrent runs').argParser(wholeNumber))
    .option('--name <name>', 'name of this worker in `carillon doctor` and pg_stat_activity (default: the host name)')
    .option('--host <address>', `address of the health and metrics server (default: CARILLON_HOST or ${HOST})`)
    .addOption(
      new Option('--metrics-port <port>', `port of the health and metrics server (default: ${METRICS_PORT})`).argParser(
        wholeNumber,
      ),
    )
  examples(worker, 'DATABASE_URL=postgres://carillon@db/carillon carillon worker --targets http --concurrency 200')
  define<WorkerOptions>(worker, async ({ cli, options, isJson }) => {
    const { startWorker } = await import('@carillon/server')
    const { targets, concurrency, name, metricsPort } = options
    const settings = await readServiceSettings(cli, options)
    const workerOptions = { targetKinds: targets, ...dropUndefined({ concurrency, name, metricsPort }) }
    await runService({
      cli,
      isJson,
      start: (start) => startWorker(settings, { ...workerOptions, ...start }),
      lines: ({ url }) =>
        fieldLines(cli.terminal, [
          ['Targets', targets.join(', ')],
          ['Health', `${url}/healthz`],
          ['Metrics', `${url}/metrics`],
        ]),
    })
  })
}
