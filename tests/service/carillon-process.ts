import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

import { REPOSITORY } from '../house/run-tool.ts'

const CARILLON = join(REPOSITORY, 'packages/cli/bin/carillon.js')

/** A `carillon …` of its own, that serves until it is ended. */
export interface CarillonProcess extends AsyncDisposable {
  /** Where it says that it listens. */
  readonly url: string
  /** @returns its exit code, or the signal that ended it */
  end(signal: NodeJS.Signals): Promise<number | NodeJS.Signals | null>
}

/** Resolves once it says where it listens. */
export async function startCarillon(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<CarillonProcess> {
  const child = spawn(process.execPath, [CARILLON, ...args], {
    env: { ...process.env, ...env, NO_COLOR: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const exited = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>
  const url = await Promise.race([findUrl(child), exited.then(() => undefined)])
  if (url === undefined) throw new Error(`carillon ${args.join(' ')} ended before it listened`)
  const end = async (signal: NodeJS.Signals): Promise<number | NodeJS.Signals | null> => {
    if (child.exitCode === null && child.signalCode === null) child.kill(signal)
    const [code, by] = await exited
    return by ?? code
  }
  return { url, end, [Symbol.asyncDispose]: async () => void (await end('SIGKILL')) }
}

async function findUrl(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    for (const stream of [child.stdout, child.stderr]) {
      if (stream === null) continue
      createInterface(stream).on('line', (line) => {
        const [url] = /http:\/\/127\.0\.0\.1:\d+/.exec(line) ?? []
        if (url !== undefined) resolve(url)
      })
    }
  })
}
