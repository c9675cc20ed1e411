import { CommanderError } from 'commander'

import { createDefine } from './commands/define.ts'
import { reportJson, reportOf, reportText } from './error-report.ts'
import type { Cli } from './process/cli.ts'
import { EXIT_CODES, exitForError, type Exit } from './process/exit-codes.ts'
import { createProgram } from './program.ts'

/** Runs a command line and returns its exit code. Never throws. */
export async function runCli(args: readonly string[], cli: Cli): Promise<number> {
  let exit: Exit = 'ok'
  const define = createDefine(cli, (ended) => (exit = ended))
  try {
    await createProgram({ define, terminal: cli.terminal }).parseAsync(args, { from: 'user' })
    return EXIT_CODES[exit].code
  } catch (error) {
    return reportError(error, args, cli)
  }
}

/** Prints an error and returns the exit code. */
export function reportError(error: unknown, args: readonly string[], cli: Cli): number {
  if (error instanceof CommanderError && error.exitCode === 0) return EXIT_CODES.ok.code
  // No subcommand was given: commander has printed the help instead of an error.
  if (error instanceof CommanderError && error.code === 'commander.help') return EXIT_CODES.usage.code
  const report = reportOf(error, cli)
  // Searches the raw arguments, because the error may be that they cannot be parsed.
  const isJson = args.includes('--json')
  cli.terminal.writeError(isJson ? reportJson(report) : reportText(report, cli.terminal))
  if (cli.env['CARILLON_DEBUG'] === '1' && error instanceof Error) cli.terminal.writeError(`${traceOf(error)}\n`)
  return EXIT_CODES[exitForError(report.code)].code
}

function traceOf(error: Error): string {
  const trace = error.stack ?? error.message
  return error.cause instanceof Error ? `${trace}\ncaused by: ${traceOf(error.cause)}` : trace
}
