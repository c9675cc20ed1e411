import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { text } from 'node:stream/consumers'

import { CliError } from './cli-error.ts'
import type { Cli } from './cli.ts'

/** The text of a file; of standard input if it is called `-`. */
export async function readText(path: string, { cwd, stdin }: Pick<Cli, 'cwd' | 'stdin'>): Promise<string> {
  try {
    const content = path === '-' ? await text(stdin) : await readFile(resolve(cwd, path), 'utf8')
    return content.replace(/^\uFEFF/, '')
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new CliError('file_unreadable', `expected a file that can be read, got ${path}: ${reason}`, { cause: error })
  }
}
