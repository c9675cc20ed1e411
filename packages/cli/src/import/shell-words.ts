/** A command line split as a shell would split it, as far as that is possible without running one. */
export interface ShellWords {
  readonly words: readonly string[]
  /** The files that the output is redirected to. */
  readonly outputs: readonly string[]
  /** The first part that only a shell can execute, such as a pipe; null if there is none. */
  readonly shellOnly: string | null
}

const REDIRECT = /^(?:\d|&)?>>?(?:&\d|\s*([^\s|;<>()"']+))/
const OPERATOR = /^(?:&&|\|\||[|;<()&])/
const SUBSTITUTION = /^(?:\$[\w({!?*@#$-]|`)/

/**
 * Not the library shell-quote, because an import must refuse what it cannot translate faithfully. shell-quote 1.12 cuts a URL
 * at `#`, drops a quote without its end, and returns a command substitution in backticks as text, just as it
 * returns backticks in single quotes. The tests beside this file hold these cases.
 */
export function splitShellWords(command: string): ShellWords {
  const words: string[] = []
  const outputs: string[] = []
  let word: string | null = null
  let shellOnly: string | null = null
  let rest = command
  const take = (length: number): void => {
    rest = rest.slice(length)
  }
  while (rest !== '') {
    const redirect = word === null || word === '' ? REDIRECT.exec(rest) : null
    const operator = OPERATOR.exec(rest)?.[0] ?? SUBSTITUTION.exec(rest)?.[0]
    if (redirect !== null) {
      if (redirect[1] !== undefined) outputs.push(redirect[1])
      take(redirect[0].length)
    } else if (operator !== undefined) {
      shellOnly ??= operator
      take(operator.length)
    } else if (/^\s/.test(rest)) {
      if (word !== null) words.push(word)
      word = null
      take(1)
    } else if (word === null && rest.startsWith('#')) {
      rest = ''
    } else {
      const part = readPart(rest)
      word = (word ?? '') + part.text
      shellOnly ??= part.shellOnly
      take(part.length)
    }
  }
  if (word !== null) words.push(word)
  return { words, outputs, shellOnly }
}

interface Part {
  readonly text: string
  readonly length: number
  readonly shellOnly: string | null
}

/** Reads one character, or one quoted text. */
function readPart(rest: string): Part {
  const single = /^'([^']*)'/.exec(rest)
  if (single !== null) return { text: single[1] ?? '', length: single[0].length, shellOnly: null }
  const double = /^"((?:[^"\\]|\\[^])*)"/.exec(rest)
  if (double !== null) {
    const inner = double[1] ?? ''
    const substitution = /(?<!\\)(\$[\w({]|`)/.exec(inner)?.[1] ?? null
    return { text: inner.replace(/\\([$`"\\])/g, '$1'), length: double[0].length, shellOnly: substitution }
  }
  if (/^["']/.test(rest)) return { text: rest, length: rest.length, shellOnly: 'a quote without its end' }
  if (rest.startsWith('\\') && rest.length > 1) return { text: rest.charAt(1), length: 2, shellOnly: null }
  return { text: rest.charAt(0), length: 1, shellOnly: null }
}
