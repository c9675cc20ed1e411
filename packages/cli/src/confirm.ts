import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'

import { CliError } from './cli-error.ts'
import type { Cli } from './cli.ts'

/** Asks before something that cannot be taken back. Where nobody can be asked, `--yes` has to say so. */
export async function confirm(cli: Cli, question: string, isConfirmed: boolean | undefined): Promise<void> {
  if (isConfirmed === true) return
  if (!cli.terminal.canAsk) throw nobodyToAsk('--yes')
  const answer = await ask(cli, `${question} [y/N] `)
  if (!/^y(es)?$/i.test(answer)) throw notConfirmed()
}

interface NamedThing {
  readonly what: string
  readonly name: string
  /** What `--confirm` said. */
  readonly confirmed: string | undefined
}

/** Has a name typed out before a great deal is lost. @returns the name as it was given */
export async function confirmByName(cli: Cli, { what, name, confirmed }: NamedThing): Promise<string> {
  if (confirmed === undefined && !cli.terminal.canAsk) throw nobodyToAsk('--confirm <name>')
  const given = confirmed ?? (await ask(cli, `Type the name of ${what} to go on: `))
  if (given !== name) throw notConfirmed()
  return given
}

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

function nobodyToAsk(flag: string): CliError {
  return new CliError('not_confirmed', `expected ${flag}, as nobody can be asked here: nothing was changed`)
}

function notConfirmed(): CliError {
  return new CliError('not_confirmed', 'not confirmed: nothing was changed')
}
