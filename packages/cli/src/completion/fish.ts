import type { CommandNode } from './command-tree.ts'

/** Completion for fish: a line for each command and option, with the condition under which it is offered. */
export function fishCompletion(nodes: readonly CommandNode[]): string {
  const lines = nodes.flatMap(({ path, commands, options }) => {
    const condition = `-n ${quoted(
      conditionFor(
        path,
        commands.map(({ name }) => name),
      ),
    )}`
    return [
      ...commands.map(
        ({ name, description }) => `complete -c carillon -f ${condition} -a ${name} -d ${quoted(description)}`,
      ),
      ...options.map(({ flag, description, takesValue, choices }) =>
        [
          `complete -c carillon ${condition} -l ${flag.slice(2)} -d ${quoted(description)}`,
          ...(takesValue ? ['-r'] : []),
          ...(choices.length > 0 ? [`-f -a ${quoted(choices.join(' '))}`] : []),
        ].join(' '),
      ),
    ]
  })
  return `# fish completion of carillon: carillon completion fish | source\n${lines.join('\n')}\n`
}

/** All words of the path are there, and none of those that lead further. */
function conditionFor(path: string, children: readonly string[]): string {
  const seen = path
    .split(' ')
    .filter((word) => word !== '')
    .map((word) => `__fish_seen_subcommand_from ${word}`)
  const further = children.length === 0 ? [] : [`not __fish_seen_subcommand_from ${children.join(' ')}`]
  return [...seen, ...further].join('; and ') || 'true'
}

function quoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
}
