import { METRICS } from '../report/metrics.ts'
import { median, type Failure, type Figure, type Machine } from '../results.ts'
import type { SideName } from './side-message.ts'

/** Medians are equal if they differ by at most this share of the base's median. */
const CLOSE = 0.05

interface Spread {
  /** One value for each round, in order. */
  readonly values: readonly number[]
  readonly median: number
  readonly low: number
  readonly high: number
}

/** One figure, as both sides measured it. */
export interface Pair {
  readonly work: string
  readonly subject: string
  readonly size: number
  readonly metric: string
  readonly unit: string
  readonly base: Spread
  readonly current: Spread
  /** This tree's median divided by the base's median. Null if the base's median is 0. */
  readonly ratio: number | null
  readonly areRangesOverlapping: boolean
  /** True if the median is within 5 % of the base's median. */
  readonly areMediansClose: boolean
  /** `equal` if the ranges overlap or the medians are close. Otherwise this tree is better or worse than the base. */
  readonly verdict: 'equal' | 'better' | 'worse'
}

export interface Comparison {
  readonly base: string
  readonly current: string
  readonly startedAt: string
  readonly seconds: number
  /** How many rounds were requested. */
  readonly rounds: number
  /** False if the time was up before the last round. */
  readonly isComplete: boolean
  readonly isSmoke: boolean
  readonly machine: Machine
  readonly postgres: Readonly<Record<string, string>>
  readonly pairs: readonly Pair[]
  readonly failures: readonly (Failure & { readonly side: SideName })[]
  readonly notes: readonly string[]
}

/** The figures that both sides have, from the rounds that both have completed. */
export function pairFigures(base: readonly Figure[], current: readonly Figure[]): readonly Pair[] {
  return base.flatMap((figure) => {
    const other = current.find((one) => isSamePlace(one, figure))
    return other === undefined ? [] : [pairOf(figure, other)]
  })
}

function isSamePlace(a: Figure, b: Figure): boolean {
  return a.work === b.work && a.subject === b.subject && a.size === b.size && a.metric === b.metric
}

function pairOf({ work, subject, size, metric, unit, values }: Figure, other: Figure): Pair {
  const rounds = Math.min(values.length, other.values.length)
  const [base, current] = [spreadOf(values.slice(0, rounds)), spreadOf(other.values.slice(0, rounds))]
  const areRangesOverlapping = base.low <= current.high && current.low <= base.high
  const areMediansClose = Math.abs(current.median - base.median) <= CLOSE * Math.abs(base.median)
  const isBetter = METRICS[metric]?.isLessBetter === true ? current.median < base.median : current.median > base.median
  return {
    work,
    subject,
    size,
    metric,
    unit,
    base,
    current,
    ratio: base.median === 0 ? null : current.median / base.median,
    areRangesOverlapping,
    areMediansClose,
    verdict: areRangesOverlapping || areMediansClose ? 'equal' : isBetter ? 'better' : 'worse',
  }
}

function spreadOf(values: readonly number[]): Spread {
  return { values, median: median(values), low: Math.min(...values), high: Math.max(...values) }
}
