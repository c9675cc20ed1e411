import { valueFlags, wordsAfter, type CommandNode } from './command-tree.ts'

/** Completion for bash: finds the command that the words so far lead to, and offers what may follow it. */
export function bashCompletion(nodes: readonly CommandNode[]): string {
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
      # The value of another option is for the user to know, or a file.
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
