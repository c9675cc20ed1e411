import type { Command } from 'commander'

import { createProgram } from '../src/program.ts'

/** The tree of commands with actions that only record which command ran. */
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

/** The commands that have an action. */
export function leavesOf(command: Command): Command[] {
  return command.commands.length === 0 ? [command] : command.commands.flatMap(leavesOf)
}
