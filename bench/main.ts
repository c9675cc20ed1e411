import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { Interrupted } from './interruption.ts'
import { folderFor, HELP, parseOptions, type Options } from './options.ts'
import { Progress } from './progress.ts'
import { checkFigures, checksText } from './report/checks.ts'
import { readNote, readResults, writeReport } from './report/write-report.ts'
import type { Results } from './results.ts'
import { runBench } from './run-bench.ts'

const BENCH = dirname(fileURLToPath(import.meta.url))
const INTERRUPTED = 130
const WRONG_USE = 2

process.exit(await main(process.argv.slice(2)))

/** @returns the exit code. A goal that is not reached is a result, not a failure. */
async function main(args: readonly string[]): Promise<number> {
  const options = readOptions(args)
  if (options === undefined) return WRONG_USE
  if (options.isHelp) {
    process.stdout.write(HELP)
    return 0
  }
  const progress = new Progress((text) => process.stderr.write(text))
  try {
    const measured = options.isRender
      ? await readResults(options.out)
      : await measure(options, commandOf(args), progress)
    const checks = checkFigures(measured, (id) => readNote(join(BENCH, 'notes'), id))
    const results: Results = { ...measured, checks }
    const folder = folderFor(options, results)
    await writeReport(folder, results)
    progress.note(`written to ${folder}`)
    process.stdout.write(options.isJson ? `${JSON.stringify(results)}\n` : checksText(results))
    return 0
  } catch (error) {
    if (!(error instanceof Interrupted)) throw error
    progress.note('interrupted: nothing is written, everything is stopped')
    return INTERRUPTED
  }
}

async function measure(options: Options, command: string, progress: Progress): Promise<Omit<Results, 'checks'>> {
  // The peers are imported only here: the help and the page do not need them, and some take seconds to load.
  const [{ PEERS }, { WORKS }] = await Promise.all([import('./peers/index.ts'), import('./works.ts')])
  return runBench({ options, command, progress, works: WORKS, peers: PEERS })
}

function readOptions(args: readonly string[]): Options | undefined {
  try {
    // npm runs a script in the folder of its package. A relative --out is relative to where the user typed the command.
    return parseOptions(args, { bench: BENCH, cwd: process.env['INIT_CWD'] ?? process.cwd() })
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n\n${HELP}`)
    return undefined
  }
}

function commandOf(args: readonly string[]): string {
  const isOut = (index: number): boolean => args[index] === '--out' || args[index - 1] === '--out'
  const told = args.filter((arg, index) => !isOut(index) && !arg.startsWith('--out=') && arg !== '--json')
  return ['npm run bench', ...(told.length > 0 ? ['--', ...told] : [])].join(' ')
}
