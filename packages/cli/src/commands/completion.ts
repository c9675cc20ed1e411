import { Argument, type Command } from 'commander'

import { completionScripts, type CommandNode, type CommandOption, type Shell } from '../output/completion-scripts.ts'
import { examples, type Define } from './define.ts'

export function addCompletionCommand(program: Command, define: Define): void {
  const shells = Object.keys(completionScripts)
  const completion = program
    .command('completion')
    .description('print a shell completion script')
    .addArgument(new Argument('<shell>', shells.join(', ')).choices(shells))
  examples(completion, 'source <(carillon completion bash)', 'carillon completion fish | source')
  define(completion, async ({ cli, args }) => {
    // Commander accepts only the choices above.
    const shell = args[0] as Shell
    cli.terminal.writeOut(completionScripts[shell](commandNodes(program)))
  })
}

/** The program and every command below it, parents first. */
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
  const global = command.createHelp().visibleGlobalOptions(command)
  return [...own, ...global].flatMap(({ long, description, required, argChoices }) =>
    long === undefined || long === null
      ? []
      : [{ flag: long, description, takesValue: required, choices: argChoices ?? [] }],
  )
}
