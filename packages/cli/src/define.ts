import type { Command } from 'commander'

import type { Cli } from './cli.ts'
import type { Exit } from './exit-codes.ts'

/** One command, as it was given. */
export interface Invocation<Options> {
  readonly cli: Cli
  /** In the order that the command declares; those left out are missing at the end. */
  readonly args: readonly string[]
  readonly options: Options
  readonly isJson: boolean
  /** The result: as JSON for programs, otherwise as lines. */
  readonly show: (answer: unknown, lines: () => readonly string[]) => void
  /** Anything else that people want to know. Programs are not told. */
  readonly note: (text: string) => void
}

/** Most commands just end. */
type Act<Options> = (invocation: Invocation<Options>) => Promise<Exit | void>

/** Says what a command does. Passed to the commands, so that their tree can be looked at without anything being done. */
export type Define = <Options extends object>(command: Command, act: Act<Options>) => void

/** Commands that do what they say. `end` is told how each went. */
export function createDefine(cli: Cli, end: (exit: Exit) => void): Define {
  return (command, act) => {
    command.action(async () => {
      const options = command.optsWithGlobals<Parameters<typeof act>[0]['options'] & { readonly json?: boolean }>()
      end((await act(invocationOf(cli, command, options))) ?? 'ok')
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

/** Examples below the options of a command. Each line is a command as it is typed; a test reads them. */
export function examples(command: Command, ...lines: readonly string[]): void {
  command.addHelpText('after', ['', 'Examples:', ...lines.map((line) => `  $ ${line}`)].join('\n'))
}
