import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

interface StartedChild {
  readonly child: ChildProcess
  /** The address of its Postgres, or why there is none. */
  readonly said: string
}

/** Starts a Postgres from a process of its own, under another user if given one. */
export async function startInChild(dataDir: string, user?: { uid: number; gid: number }): Promise<StartedChild> {
  const script = fileURLToPath(new URL('./start-in-child.ts', import.meta.url))
  const child = spawn(process.execPath, [script, dataDir], { ...user, cwd: '/', stdio: ['pipe', 'pipe', 'inherit'] })
  const [said] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
  return { child, said }
}
