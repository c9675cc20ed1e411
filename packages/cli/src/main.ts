import { systemClock } from './clock.ts'
import { EXIT_CODES } from './exit-codes.ts'
import { watchInterrupts } from './interrupts.ts'
import { createTerminal } from './output/terminal.ts'
import { runCli } from './run-cli.ts'

const signal = watchInterrupts(process, systemClock, () => process.exit(EXIT_CODES.interrupted.code))

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // Whoever read the output has enough of it (`| head`). But a terminal that was closed does not hurry an orderly end.
  if (!signal.aborted) process.exit(error.code === 'EPIPE' ? EXIT_CODES.ok.code : EXIT_CODES.refused.code)
})
process.stderr.on('error', () => undefined)

process.exitCode = await runCli(process.argv.slice(2), {
  env: process.env,
  cwd: process.cwd(),
  terminal: createTerminal(process, process.env),
  clock: systemClock,
  stdin: process.stdin,
  signal,
})
