import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

import type { EmbeddedPostgres } from '../src/index.ts'

interface ChildOptions {
  readonly user?: { readonly uid: number; readonly gid: number }
  /** @default `start-in-child.ts` of this checkout */
  readonly script?: string
}

interface StartedChild {
  readonly child: ChildProcess
  /** The URL of its Postgres, or the error message. */
  readonly said: string
  readonly copied: EmbeddedPostgres['copiedProgram']
}

/** Starts a Postgres from a child process. With `user`, the child runs as that user. */
export async function startInChild(dataDir: string, { user, script }: ChildOptions = {}): Promise<StartedChild> {
  const file = script ?? fileURLToPath(new URL('./start-in-child.ts', import.meta.url))
  const child = spawn(process.execPath, [file, dataDir], { ...user, cwd: '/', stdio: ['pipe', 'pipe', 'inherit'] })
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
  const { said, copied } = JSON.parse(line) as Pick<StartedChild, 'said' | 'copied'>
  return { child, said, copied }
}
