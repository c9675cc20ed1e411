import type { Command } from 'commander'

import { createProgram } from '../src/program.ts'

/** The tree of commands, doing nothing: a command that would act is written down instead. */
export function recordedProgram(): { program: Command; acted: string[] } {
  const acted: string[] = []
  const program = createProgram({
    define: (command) => void command.action(() => void acted.push(pathOf(command))),
    terminal: { writeOut: () => undefined, writeError: () => undefined, width: null, hasColor: false },
  })
  return { program, acted }
}

export function pathOf(command: Command): string {
  const { parent } = command
  return parent === null ? '' : `${pathOf(parent)} ${command.name()}`.trim()
}

/** The commands that do something. */
export function leavesOf(command: Command): Command[] {
  return command.commands.length === 0 ? [command] : command.commands.flatMap(leavesOf)
}
