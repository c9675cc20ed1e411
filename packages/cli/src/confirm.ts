import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'

import { CliError } from './cli-error.ts'
import type { Cli } from './cli.ts'

/** Asks before something that cannot be taken back. Where nobody can be asked, `--yes` has to say so. */
export async function confirm(cli: Cli, question: string, isConfirmed: boolean | undefined): Promise<void> {
  if (isConfirmed === true) return
  const { terminal, stdin, signal } = cli
  if (!terminal.canAsk) {
    throw new CliError('not_confirmed', 'expected --yes, as nobody can be asked here: nothing was changed')
  }
  const output = new Writable({
    write: (chunk, _encoding, done) => {
      terminal.writeError(String(chunk))
      done()
    },
  })
  const dialogue = createInterface({ input: stdin, output })
  try {
    const answer = await dialogue.question(`${question} [y/N] `, { signal })
    if (/^y(es)?$/i.test(answer.trim())) return
  } finally {
    dialogue.close()
  }
  throw new CliError('not_confirmed', 'not confirmed: nothing was changed')
}
