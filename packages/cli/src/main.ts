import { createTerminal } from './output/terminal.ts'
import { CliError } from './process/cli-error.ts'
import type { Cli } from './process/cli.ts'
import { systemClock } from './process/clock.ts'
import { EXIT_CODES } from './process/exit-codes.ts'
import { watchInterrupts } from './process/interrupts.ts'
import { reportError, runCli } from './run-cli.ts'

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
  // The terminal was closed during an orderly stop: let the stop continue.
  if (cli.signal.aborted) return
  // The reader closed the pipe, as `| head` does: that is no error.
  if (error.code === 'EPIPE') process.exit(EXIT_CODES.ok.code)
  const message = `cannot write to standard output: ${error.message}`
  process.exit(reportError(new CliError('output_unwritable', message, { cause: error }), args, cli))
})
process.stderr.on('error', () => undefined)

process.exitCode = await runCli(args, cli)
