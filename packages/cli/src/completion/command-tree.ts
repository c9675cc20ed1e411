import type { Command } from 'commander'

/** A command as the shells need to know it. */
export interface CommandNode {
  /** `schedules create`; empty for the program itself. */
  readonly path: string
  readonly commands: readonly { readonly name: string; readonly description: string }[]
  readonly options: readonly CommandOption[]
}

interface CommandOption {
  readonly flag: string
  readonly description: string
  readonly takesValue: boolean
  readonly choices: readonly string[]
}

/** Every command below the program, and the program itself, parents first. */
export function commandNodes(program: Command): CommandNode[] {
  return nodesBelow(program, [])
}

function nodesBelow(command: Command, path: readonly string[]): CommandNode[] {
  const { commands } = command
  const node = {
    path: path.join(' '),
    commands: commands.map((each) => ({ name: each.name(), description: each.description() })),
    options: optionsOf(command),
  }
  return [node, ...commands.flatMap((each) => nodesBelow(each, [...path, each.name()]))]
}

function optionsOf(command: Command): CommandOption[] {
  const own = command.createHelp().visibleOptions(command)
  const shared = command.createHelp().visibleGlobalOptions(command)
  return [...own, ...shared].flatMap(({ long, description, required, argChoices }) =>
    long === undefined || long === null
      ? []
      : [{ flag: long, description, takesValue: required, choices: argChoices ?? [] }],
  )
}

/** Everything that may stand after a command, commands first. */
export function wordsAfter({ commands, options }: CommandNode): string[] {
  return [...commands.map(({ name }) => name), ...options.map(({ flag }) => flag)]
}

/** The options of the whole tree that take a value, each once. */
export function valueFlags(nodes: readonly CommandNode[]): string[] {
  const flags = nodes.flatMap(({ options }) => options.filter(({ takesValue }) => takesValue).map(({ flag }) => flag))
  return [...new Set(flags)].toSorted()
}
