import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'

interface ProgramOptions {
  readonly cwd: string
  readonly signal: AbortSignal
  readonly env?: NodeJS.ProcessEnv
}

/**
 * Runs a program to its end. If the signal aborts, it ends the program and its children. The program writes nothing after this has
 * returned.
 * @returns its standard output
 * @throws Error with its standard error, if it failed
 */
export async function runProgram(program: string, args: readonly string[], options: ProgramOptions): Promise<string> {
  const { cwd, signal, env = process.env } = options
  signal.throwIfAborted()
  // The child has a process group of its own, so that all of its processes can be ended.
  const child = spawn(program, args, { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  const end = (): void => {
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
  }
  signal.addEventListener('abort', end, { once: true })
  try {
    const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
    signal.throwIfAborted()
    if (child.exitCode === 0) return stdout
    throw new Error(
      `expected ${program} ${args[0] ?? ''} to succeed, got exit code ${child.exitCode}: ${stderr.trim()}`,
    )
  } finally {
    signal.removeEventListener('abort', end)
  }
}
