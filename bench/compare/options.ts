import { parseArgs } from 'node:util'

import { PLANS, WORK_NAMES } from '../plan.ts'
import type { Sizes, WorkName } from '../work.ts'

export interface CompareOptions {
  /** A commit or a folder. Empty with --help. */
  readonly base: string
  readonly works: readonly WorkName[]
  readonly rounds: number
  readonly isSmoke: boolean
  readonly isJson: boolean
  readonly isHelp: boolean
}

const ROUNDS_DEFAULT = 5
const WORKS_DEFAULT: readonly WorkName[] = ['drain', 'lateness']
/** All works except those that hold a million schedules: loading these for each side takes longer than measuring. */
const WORKS: readonly WorkName[] = WORK_NAMES.filter((name) => name !== 'scale' && name !== 'pages')

export const COMPARE_HELP = `npm run bench:compare -- --base <commit or folder> [options]

Measures two versions of Carillon in turn on one Postgres: the base, and this working tree. Each is driven by its own bench.

  --base <base>   a commit of this repository, which is checked out into a temporary folder,
                  or a folder that has its node_modules
  --only <works>  ${WORKS_DEFAULT.join(',')} by default; others: ${WORKS.join(',')}
  --rounds <n>    so many rounds of each side instead of ${ROUNDS_DEFAULT}, after a warm-up that is not counted
  --smoke         tiny sizes: says only that everything still runs; its numbers mean nothing
  --json          print the comparison as JSON on standard output
  --help          this text
`

/** The sizes of one round of each side. */
export const COMPARE_SIZES: Sizes = {
  ...PLANS.full.sizes,
  drain: { ...PLANS.full.sizes.drain, counts: [60_000] },
  idle: { schedules: 100_000, seconds: 30 },
}

/** Sizes that are large enough for the JIT compiler to warm up. */
export const WARM_UP_SIZES: Sizes = {
  ...PLANS.smoke.sizes,
  drain: { ...PLANS.full.sizes.drain, counts: [10_000] },
}

export const SMOKE_SIZES: Sizes = PLANS.smoke.sizes

/** @throws Error that names the option at fault */
export function parseCompareOptions(args: readonly string[]): CompareOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      base: { type: 'string' },
      only: { type: 'string' },
      rounds: { type: 'string' },
      smoke: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  const { base = '', help: isHelp } = values
  if (base === '' && !isHelp) throw new Error('expected --base with a commit or a folder, got none')
  return {
    base,
    works: worksOf(values.only),
    rounds: roundsOf(values.rounds),
    isSmoke: values.smoke,
    isJson: values.json,
    isHelp,
  }
}

function worksOf(only: string | undefined): readonly WorkName[] {
  if (only === undefined) return WORKS_DEFAULT
  const asked = only.split(',').map((name) => name.trim())
  const unknown = asked.find((name) => !WORKS.some((known) => known === name))
  if (unknown !== undefined) {
    throw new Error(`expected --only with works that can be compared, got "${unknown}": they are ${WORKS.join(', ')}`)
  }
  return WORKS.filter((name) => asked.includes(name))
}

function roundsOf(text: string | undefined): number {
  if (text === undefined) return ROUNDS_DEFAULT
  const rounds = Number(text)
  if (!Number.isInteger(rounds) || rounds < 1 || rounds > 100) {
    throw new Error(`expected --rounds from 1 to 100, got "${text}": give a whole number`)
  }
  return rounds
}
