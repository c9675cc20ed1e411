import { isAbsolute, join } from 'node:path'
import { parseArgs } from 'node:util'

import { PLANS, WORK_NAMES, type PlanName } from './plan.ts'
import type { WorkName } from './work.ts'

export interface Options {
  readonly plan: PlanName
  readonly works: readonly WorkName[]
  /** Undefined: the number of rounds in the plan. */
  readonly rounds: number | undefined
  readonly out: string
  /** The folder for the results of a run that reached its time limit. */
  readonly outIfCutShort: string
  readonly isJson: boolean
  readonly isHelp: boolean
  readonly isRender: boolean
}

export const HELP = `npm run bench -- [options]

Measures Carillon beside others on the same work, and writes results.json, RESULTS.md and charts/*.png.

  --quick         smaller sizes, one round; minutes
  --smoke         tiny sizes: says only that everything still runs; seconds
  --only <works>  some works only, by name: ${WORK_NAMES.join(',')}
  --rounds <n>    so many rounds of every work instead of ${PLANS.full.rounds} (${PLANS.quick.rounds} with --quick)
  --out <folder>  where the results go; bench/ by default, bench/tmp/ if it is not the whole of the full run,
                  with all its rounds and to its end
  --json          print results.json on standard output, instead of the figures to reach
  --render        measure nothing: write RESULTS.md and the charts anew from results.json, with the notes of today
  --help          this text
`

/** @throws Error that names the option at fault */
export function parseOptions(args: readonly string[], folders: { bench: string; cwd: string }): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: 'boolean', default: false },
      smoke: { type: 'boolean', default: false },
      only: { type: 'string' },
      rounds: { type: 'string' },
      out: { type: 'string' },
      json: { type: 'boolean', default: false },
      render: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.quick && values.smoke) throw new Error('expected --quick or --smoke, got both: choose one')
  const plan = values.smoke ? 'smoke' : values.quick ? 'quick' : 'full'
  const rounds = roundsOf(values.rounds)
  const isWhole = plan === 'full' && values.only === undefined && (rounds ?? PLANS.full.rounds) >= PLANS.full.rounds
  return {
    plan,
    works: worksOf(values.only),
    rounds,
    out: outOf(values.out, folders, isWhole),
    outIfCutShort: outOf(values.out, folders, false),
    isJson: values.json,
    isHelp: values.help,
    isRender: values.render,
  }
}

function worksOf(only: string | undefined): readonly WorkName[] {
  if (only === undefined) return WORK_NAMES
  const asked = only.split(',').map((name) => name.trim())
  const unknown = asked.find((name) => !WORK_NAMES.some((known) => known === name))
  if (unknown !== undefined) {
    throw new Error(`expected --only with names of works, got "${unknown}": the works are ${WORK_NAMES.join(', ')}`)
  }
  return WORK_NAMES.filter((name) => asked.includes(name))
}

function roundsOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const rounds = Number(text)
  if (!Number.isInteger(rounds) || rounds < 1 || rounds > 100) {
    throw new Error(`expected --rounds from 1 to 100, got "${text}": give a whole number`)
  }
  return rounds
}

/** A partial run must not replace the published results. */
function outOf(out: string | undefined, folders: { bench: string; cwd: string }, isWhole: boolean): string {
  if (out === undefined) return isWhole ? folders.bench : join(folders.bench, 'tmp')
  return isAbsolute(out) ? out : join(folders.cwd, out)
}

/** The folder for the results. A run that was cut short must not replace the published results either. */
export function folderFor({ out, outIfCutShort, isRender }: Options, { isComplete }: { isComplete: boolean }): string {
  // Rendering writes to the folder that it read from.
  return isComplete || isRender ? out : outIfCutShort
}
