import { Option, type Command } from 'commander'

import { examples, type Define } from '../define.ts'
import { list, wholeNumber } from '../option-values.ts'
import { fieldLines } from '../output/table.ts'
import { runService, settingsFlags, type AddressOptions } from '../run-service.ts'

interface WorkerOptions extends AddressOptions {
  readonly targets: readonly string[]
  readonly concurrency?: number
  readonly name?: string
  readonly metricsPort?: number
}

export function addWorker(program: Command, define: Define): void {
  const worker = program
    .command('worker')
    .description('run slots as they come due, on the Postgres of DATABASE_URL')
    .addOption(
      new Option('--targets <kinds>', 'the kinds of targets it serves').argParser(list).default(['http'], 'http'),
    )
    .addOption(new Option('--concurrency <count>', 'so many runs at once').argParser(wholeNumber))
    .option('--name <name>', 'what it is called in logs and in the ledger')
    .option('--host <address>', 'where its health and metrics are served (CARILLON_HOST, 127.0.0.1)')
    .addOption(new Option('--metrics-port <port>', 'and on which port (7401)').argParser(wholeNumber))
  examples(worker, 'DATABASE_URL=postgres://carillon@db/carillon carillon worker --targets http --concurrency 200')
  define<WorkerOptions>(worker, async (invocation) => {
    const { readSettings, startWorker } = await import('@carillon/server')
    const { cli, options } = invocation
    const { targets, concurrency, name, metricsPort } = options
    const settings = readSettings(cli.env, settingsFlags(options, cli))
    const worker = {
      targetKinds: targets,
      ...(concurrency === undefined ? {} : { concurrency }),
      ...(name === undefined ? {} : { name }),
      ...(metricsPort === undefined ? {} : { metricsPort }),
    }
    return runService(
      invocation,
      (start) => startWorker(settings, { ...worker, ...start }),
      ({ url }) =>
        fieldLines(cli.terminal, [
          ['Targets', targets.join(', ')],
          ['Health', `${url}/healthz`],
          ['Metrics', `${url}/metrics`],
        ]),
    )
  })
}
