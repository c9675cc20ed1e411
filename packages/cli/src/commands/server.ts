import { Option, type Command } from 'commander'

import { examples, type Define } from '../define.ts'
import { wholeNumber } from '../option-values.ts'
import { fieldLines } from '../output/table.ts'
import { runService, settingsFlags, type AddressOptions } from '../run-service.ts'

export function addServer(program: Command, define: Define): void {
  const server = program
    .command('server')
    .description('run the API alone, on the Postgres of DATABASE_URL')
    .addOption(new Option('--port <port>', 'where it listens (CARILLON_PORT, 7400)').argParser(wholeNumber))
    .option('--host <address>', 'on which address (CARILLON_HOST, 127.0.0.1)')
  examples(server, 'DATABASE_URL=postgres://carillon@db/carillon carillon server --host 0.0.0.0')
  define<AddressOptions>(server, async (invocation) => {
    const { readSettings, startServer } = await import('@carillon/server')
    const { cli, options } = invocation
    const settings = readSettings(cli.env, settingsFlags(options, cli))
    return runService(
      invocation,
      (start) => startServer(settings, start),
      ({ url }) =>
        fieldLines(cli.terminal, [
          ['API', `${url}/api/v1`],
          ['Docs', `${url}/docs`],
        ]),
    )
  })
}
