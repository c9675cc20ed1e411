import { CliError } from './cli-error.ts'
import type { Cli } from './cli.ts'
import { systemClock } from './clock.ts'
import { EXIT_CODES } from './exit-codes.ts'
import { watchInterrupts } from './interrupts.ts'
import { createTerminal } from './output/terminal.ts'
import { endWith, runCli } from './run-cli.ts'

const args = process.argv.slice(2)
const cli: Cli = {
  env: process.env,
  cwd: process.cwd(),
  terminal: createTerminal(process, process.env),
  clock: systemClock,
  stdin: process.stdin,
  signal: watchInterrupts(process, systemClock, () => process.exit(EXIT_CODES.interrupted.code)),
}

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // A terminal that was closed does not hurry an orderly end.
  if (cli.signal.aborted) return
  // Whoever read the output has enough of it (`| head`).
  if (error.code === 'EPIPE') process.exit(EXIT_CODES.ok.code)
  const message = `the output cannot be written: ${error.message}`
  process.exit(endWith(new CliError('output_unwritable', message, { cause: error }), args, cli))
})
process.stderr.on('error', () => undefined)

process.exitCode = await runCli(args, cli)
