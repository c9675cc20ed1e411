import type { Readable } from 'node:stream'

import type { Terminal } from '../output/terminal.ts'
import type { Clock } from './clock.ts'

export type Environment = Readonly<Record<string, string | undefined>>

/** Everything outside the program that a command may use. Tests pass their own. */
export interface Cli {
  readonly env: Environment
  readonly cwd: string
  readonly terminal: Terminal
  readonly clock: Clock
  readonly stdin: Readable
  /** Aborts when the user interrupts the program. */
  readonly signal: AbortSignal
}
