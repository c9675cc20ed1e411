import type { Readable } from 'node:stream'

import type { Clock } from './clock.ts'
import type { Terminal } from './output/terminal.ts'

export type Environment = Readonly<Record<string, string | undefined>>

/** What a command has to do with the world. */
export interface Cli {
  readonly env: Environment
  readonly cwd: string
  readonly terminal: Terminal
  readonly clock: Clock
  readonly stdin: Readable
  /** Fires when somebody interrupts. */
  readonly signal: AbortSignal
}
