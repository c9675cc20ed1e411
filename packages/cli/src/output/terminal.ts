/** Where the program writes. Standard output carries results only; progress, hints and errors go to standard error. */
export interface Terminal {
  writeOut(text: string): void
  writeError(text: string): void
  /** The width of standard output in columns; null if it is no terminal, and then no text is cut. */
  readonly width: number | null
  readonly hasColor: boolean
  /** True if the program can ask the user a question. */
  readonly canAsk: boolean
  /** True if a line on standard error can be overwritten. */
  readonly canRedraw: boolean
}

/** What the formatters of this folder need to know of the terminal. */
export type Screen = Pick<Terminal, 'width' | 'hasColor'>

export function createTerminal(
  { stdin, stdout, stderr }: Pick<NodeJS.Process, 'stdin' | 'stdout' | 'stderr'>,
  env: Readonly<Record<string, string | undefined>>,
): Terminal {
  const { NO_COLOR: noColor = '', TERM: term } = env
  const isPlain = noColor !== '' || term === 'dumb'
  return {
    writeOut: (text) => void stdout.write(text),
    writeError: (text) => void stderr.write(text),
    width: stdout.isTTY ? stdout.columns : null,
    hasColor: stdout.isTTY && !isPlain,
    canAsk: stdin.isTTY && stderr.isTTY,
    canRedraw: stderr.isTTY && term !== 'dumb',
  }
}
