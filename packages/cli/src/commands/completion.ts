import { Argument, type Command } from 'commander'

import { bashCompletion } from '../completion/bash.ts'
import { commandNodes, type CommandNode } from '../completion/command-tree.ts'
import { fishCompletion } from '../completion/fish.ts'
import { zshCompletion } from '../completion/zsh.ts'
import { examples, type Define } from '../define.ts'

type Shell = 'bash' | 'zsh' | 'fish'

const SCRIPTS: Readonly<Record<Shell, (nodes: readonly CommandNode[]) => string>> = {
  bash: bashCompletion,
  zsh: zshCompletion,
  fish: fishCompletion,
}

export function addCompletion(program: Command, define: Define): void {
  const shells = Object.keys(SCRIPTS)
  const completion = program
    .command('completion')
    .description('write a script that completes commands and options in a shell')
    .addArgument(new Argument('<shell>', `one of ${shells.join(', ')}`).choices(shells))
  examples(completion, 'source <(carillon completion bash)', 'carillon completion fish | source')
  define(completion, async ({ cli, args }) => {
    const script = SCRIPTS[args[0] as Shell]
    cli.terminal.writeOut(script(commandNodes(program)))
  })
}
