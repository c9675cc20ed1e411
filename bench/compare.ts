import { comparisonText } from './compare/comparison-text.ts'
import { COMPARE_HELP, parseCompareOptions, type CompareOptions } from './compare/options.ts'
import { runCompare } from './compare/run-compare.ts'
import { Interrupted, interruptible } from './interruption.ts'
import { Progress } from './progress.ts'

const INTERRUPTED = 130
const WRONG_USE = 2
const FAILED = 1
const LIMIT_MS = 90 * 60_000

process.exit(await main(process.argv.slice(2)))

/** @returns the exit code. A slower side is a result, not a failure. A side that could not be measured is a failure. */
async function main(args: readonly string[]): Promise<number> {
  const options = readOptions(args)
  if (options === undefined) return WRONG_USE
  if (options.isHelp) {
    process.stdout.write(COMPARE_HELP)
    return 0
  }
  const progress = new Progress((text) => process.stderr.write(text))
  const note = (text: string): void => {
    progress.note(text)
  }
  // npm runs a script in the folder of its package. A relative folder is relative to where the user typed the command.
  const cwd = process.env['INIT_CWD'] ?? process.cwd()
  try {
    const comparison = await interruptible({ limitMs: LIMIT_MS, note }, (signal) =>
      runCompare({ options, cwd, progress, signal }),
    )
    process.stdout.write(options.isJson ? `${JSON.stringify(comparison)}\n` : comparisonText(comparison))
    return comparison.isComplete && comparison.failures.length === 0 ? 0 : FAILED
  } catch (error) {
    if (error instanceof Interrupted) {
      progress.note('interrupted: everything is stopped and removed')
      return INTERRUPTED
    }
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
    return FAILED
  }
}

function readOptions(args: readonly string[]): CompareOptions | undefined {
  try {
    return parseCompareOptions(args)
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n\n${COMPARE_HELP}`)
    return undefined
  }
}
