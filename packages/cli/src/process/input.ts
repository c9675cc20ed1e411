import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { text } from 'node:stream/consumers'

import { messageOf } from '@carillon/api'

import { CliError } from './cli-error.ts'
import type { Cli } from './cli.ts'

/** Reads a file, or standard input if the path is `-`. */
export async function readText(path: string, { cwd, stdin }: Pick<Cli, 'cwd' | 'stdin'>): Promise<string> {
  try {
    const content = path === '-' ? await text(stdin) : await readFile(resolve(cwd, path), 'utf8')
    return content.replace(/^\uFEFF/, '')
  } catch (error) {
    const message = `expected a readable file, got ${path}: ${messageOf(error)}`
    throw new CliError('file_unreadable', message, { cause: error })
  }
}

/** Asks before a change that cannot be undone. Without a terminal, the user has to pass `--yes`. */
export async function confirm(cli: Cli, question: string, isConfirmed: boolean | undefined): Promise<void> {
  if (isConfirmed === true) return
  if (!cli.terminal.canAsk) throw noTerminal('--yes')
  const answer = await ask(cli, `${question} [y/N] `)
  if (!/^y(es)?$/i.test(answer)) throw notConfirmed()
}

interface NamedThing {
  readonly what: string
  readonly name: string
  /** The value of `--confirm`. */
  readonly confirmed: string | undefined
}

/** Makes the user type a name before much data is deleted. @returns the name as typed */
export async function confirmByName(cli: Cli, { what, name, confirmed }: NamedThing): Promise<string> {
  if (confirmed === undefined && !cli.terminal.canAsk) throw noTerminal('--confirm <name>')
  const given = confirmed ?? (await ask(cli, `Type the name of ${what} to continue: `))
  if (given !== name) throw notConfirmed()
  return given
}

/** The question goes to standard error: standard output carries results only. */
async function ask({ terminal, stdin, signal }: Cli, question: string): Promise<string> {
  const output = new Writable({
    write: (chunk, _encoding, done) => {
      terminal.writeError(String(chunk))
      done()
    },
  })
  const dialogue = createInterface({ input: stdin, output })
  try {
    return (await dialogue.question(question, { signal })).trim()
  } finally {
    dialogue.close()
  }
}

function noTerminal(flag: string): CliError {
  return new CliError('not_confirmed', `expected ${flag}, because there is no terminal to ask on: nothing was changed`)
}

function notConfirmed(): CliError {
  return new CliError('not_confirmed', 'not confirmed: nothing was changed')
}
