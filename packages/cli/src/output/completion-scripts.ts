/** A command as a completion script needs it. */
export interface CommandNode {
  /** The words that lead to the command, such as `schedules create`; empty for the program itself. */
  readonly path: string
  readonly commands: readonly { readonly name: string; readonly description: string }[]
  readonly options: readonly CommandOption[]
}

export interface CommandOption {
  readonly flag: string
  readonly description: string
  readonly takesValue: boolean
  readonly choices: readonly string[]
}

export type Shell = 'bash' | 'zsh' | 'fish'

/** Writes the completion script of each shell. */
export const completionScripts: Readonly<Record<Shell, (nodes: readonly CommandNode[]) => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
}

/** Finds the command that the words typed so far lead to, and offers the words that may follow it. */
function bashScript(nodes: readonly CommandNode[]): string {
  const children = nodes.flatMap(({ path, commands }) => commands.map(({ name }) => [path, name].join(' ').trim()))
  const words = nodes.map((node) => `    '${node.path}') words='${wordsAfter(node).join(' ')}' ;;`)
  const choices = nodes.flatMap(({ path, options }) =>
    options
      .filter(({ choices: each }) => each.length > 0)
      .map(({ flag, choices: each }) => `    '${`${path} ${flag}`.trim()}') words='${each.join(' ')}' ;;`),
  )
  return `# bash completion of carillon: source <(carillon completion bash)
_carillon() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}"
  local path='' word next index skip=0 words=''
  for ((index = 1; index < COMP_CWORD; index++)); do
    word="\${COMP_WORDS[index]}"
    if ((skip)); then skip=0; continue; fi
    case "$word" in
      ${valueFlags(nodes).join('|')}) skip=1; continue ;;
      -*) continue ;;
    esac
    next="\${path:+$path }$word"
    case "$next" in
      ${children.map((child) => `'${child}'`).join('|')}) path="$next" ;;
    esac
  done
  case "\${path:+$path }$previous" in
${choices.join('\n')}
    *)
      # This script does not know the value of any other option: leave it to the user, or offer files.
      ((skip)) && return
      case "$path" in
${words.map((line) => `    ${line}`).join('\n')}
      esac ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _carillon carillon
`
}

/** Every word that may follow a command, subcommands first. */
function wordsAfter({ commands, options }: CommandNode): string[] {
  return [...commands.map(({ name }) => name), ...options.map(({ flag }) => flag)]
}

/** The options of the whole tree that take a value, without duplicates. */
function valueFlags(nodes: readonly CommandNode[]): string[] {
  const flags = nodes.flatMap(({ options }) => options.filter(({ takesValue }) => takesValue).map(({ flag }) => flag))
  return [...new Set(flags)].toSorted()
}

/** zsh runs the bash function through its own bashcompinit. */
function zshScript(nodes: readonly CommandNode[]): string {
  const [, ...body] = bashScript(nodes).split('\n')
  return [
    '#compdef carillon',
    '# zsh completion of carillon: source <(carillon completion zsh)',
    'autoload -U +X bashcompinit && bashcompinit',
    ...body,
  ].join('\n')
}

/** One line per command and option, with the condition under which fish offers it. */
function fishScript(nodes: readonly CommandNode[]): string {
  const lines = nodes.flatMap(({ path, commands, options }) => {
    const names = commands.map(({ name }) => name)
    const condition = `-n ${quoteForFish(fishCondition(path, names))}`
    return [
      ...commands.map(
        ({ name, description }) => `complete -c carillon -f ${condition} -a ${name} -d ${quoteForFish(description)}`,
      ),
      ...options.map(({ flag, description, takesValue, choices }) =>
        [
          `complete -c carillon ${condition} -l ${flag.slice(2)} -d ${quoteForFish(description)}`,
          ...(takesValue ? ['-r'] : []),
          ...(choices.length > 0 ? [`-f -a ${quoteForFish(choices.join(' '))}`] : []),
        ].join(' '),
      ),
    ]
  })
  return `# fish completion of carillon: carillon completion fish | source\n${lines.join('\n')}\n`
}

/** The condition in fish that all words of the path were typed, and none of the subcommands below it. */
function fishCondition(path: string, children: readonly string[]): string {
  const seen = path
    .split(' ')
    .filter((word) => word !== '')
    .map((word) => `__fish_seen_subcommand_from ${word}`)
  const notBelow = children.length === 0 ? [] : [`not __fish_seen_subcommand_from ${children.join(' ')}`]
  return [...seen, ...notBelow].join('; and ') || 'true'
}

function quoteForFish(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
}
