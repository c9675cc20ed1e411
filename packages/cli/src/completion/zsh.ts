import { bashCompletion } from './bash.ts'
import type { CommandNode } from './command-tree.ts'

/** Completion for zsh, by the function for bash: zsh brings what it needs for that. */
export function zshCompletion(nodes: readonly CommandNode[]): string {
  const [, ...body] = bashCompletion(nodes).split('\n')
  return [
    '#compdef carillon',
    '# zsh completion of carillon: source <(carillon completion zsh)',
    'autoload -U +X bashcompinit && bashcompinit',
    ...body,
  ].join('\n')
}
