import { CommanderError } from 'commander'

import type { Cli } from './cli.ts'
import { createDefine } from './define.ts'
import { reportJson, reportOf, reportText } from './error-report.ts'
import { EXIT_CODES, EXIT_OF_ERROR, type Exit } from './exit-codes.ts'
import { createProgram } from './program.ts'

/** Does what the arguments say, and tells how it went as an exit code. Never throws. */
export async function runCli(args: readonly string[], cli: Cli): Promise<number> {
  let exit: Exit = 'ok'
  const define = createDefine(cli, (ended) => (exit = ended))
  try {
    await createProgram({ define, terminal: cli.terminal }).parseAsync(args, { from: 'user' })
    return EXIT_CODES[exit].code
  } catch (error) {
    return endWith(error, args, cli)
  }
}

/** Says what went wrong, and answers the exit code. */
export function endWith(error: unknown, args: readonly string[], cli: Cli): number {
  if (error instanceof CommanderError && error.exitCode === 0) return EXIT_CODES.ok.code
  // The help was shown instead of an error: no command was given.
  if (error instanceof CommanderError && error.code === 'commander.help') return EXIT_CODES.usage.code
  const report = reportOf(error, cli)
  // The arguments may be what is wrong, so they are not read again.
  const isJson = args.includes('--json')
  cli.terminal.writeError(isJson ? reportJson(report) : reportText(report, cli.terminal))
  if (cli.env['CARILLON_DEBUG'] === '1' && error instanceof Error) cli.terminal.writeError(`${traceOf(error)}\n`)
  return EXIT_CODES[EXIT_OF_ERROR[report.code]].code
}

function traceOf(error: Error): string {
  const trace = error.stack ?? error.message
  return error.cause instanceof Error ? `${trace}\ncaused by: ${traceOf(error.cause)}` : trace
}
