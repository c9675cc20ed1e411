/** Where the command line writes. Results go to `out` and nothing else does; progress, hints and errors go to `error`. */
export interface Terminal {
  writeOut(text: string): void
  writeError(text: string): void
  /** Of standard output in columns; null if it is no terminal, and then nothing is cut off. */
  readonly width: number | null
  readonly hasColor: boolean
  /** Whether somebody can be asked. */
  readonly canAsk: boolean
  /** Whether a line of standard error may be drawn over. */
  readonly canRedraw: boolean
}

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
