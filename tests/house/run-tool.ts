import { execFile } from 'node:child_process'
import { delimiter, join } from 'node:path'

/** The root of the repository, which is Vitest's working directory. */
export const REPOSITORY = process.cwd()

interface ToolResult {
  readonly exitCode: number
  readonly stdout: string
  readonly stderr: string
}

/** Runs a program in `cwd` with the tools of this repository first on its path, as `npm run` would. */
export function runTool(cwd: string, program: string, args: readonly string[] = []): Promise<ToolResult> {
  const path = [join(REPOSITORY, 'node_modules/.bin'), process.env['PATH']].join(delimiter)
  const env = { ...process.env, PATH: path, NO_COLOR: '1' }
  return new Promise((resolve) => {
    const child = execFile(program, args, { cwd, env }, (_error, stdout, stderr) => {
      resolve({ exitCode: child.exitCode ?? 1, stdout, stderr })
    })
  })
}
