import type { Command } from 'commander'

import type { Cli } from '../process/cli.ts'
import type { Exit } from '../process/exit-codes.ts'

/** One call of a command. */
export interface Invocation<Options> {
  readonly cli: Cli
  /** The arguments in the order that the command declares. Those that the user omits are missing at the end. */
  readonly args: readonly string[]
  readonly options: Options
  readonly isJson: boolean
  /** Prints the result on standard output: as JSON with `--json`, otherwise as lines. */
  readonly show: (answer: unknown, lines: () => readonly string[]) => void
  /** Prints a hint on standard error; does nothing with `--json`. */
  readonly note: (text: string) => void
}

/** Does the work of a command. If it returns nothing, the exit code is 0. */
type Action<Options> = (invocation: Invocation<Options>) => Promise<Exit | void>

/** Attaches an action to a command. Commands get it as a parameter, so that tests can build the command tree without running anything. */
export type Define = <Options extends object>(command: Command, action: Action<Options>) => void

/** The `Define` of the real program. Calls `end` with the exit of the action that ran. */
export function createDefine(cli: Cli, end: (exit: Exit) => void): Define {
  return (command, action) => {
    command.action(async () => {
      const options = command.optsWithGlobals<Parameters<typeof action>[0]['options'] & { readonly json?: boolean }>()
      end((await action(invocationOf(cli, command, options))) ?? 'ok')
    })
  }
}

function invocationOf<Options extends { readonly json?: boolean }>(
  cli: Cli,
  command: Command,
  options: Options,
): Invocation<Options> {
  const { terminal } = cli
  const isJson = options.json === true
  return {
    cli,
    args: command.args,
    options,
    isJson,
    show: (answer, lines) => {
      const text = isJson ? JSON.stringify(answer, null, 2) : lines().join('\n')
      if (text !== '') terminal.writeOut(`${text}\n`)
    },
    note: (text) => {
      if (!isJson) terminal.writeError(`${text}\n`)
    },
  }
}

/** Adds examples below the options of a command. A test parses each line as a real command line. */
export function examples(command: Command, ...lines: readonly string[]): void {
  command.addHelpText('after', ['', 'Examples:', ...lines.map((line) => `  $ ${line}`)].join('\n'))
}
