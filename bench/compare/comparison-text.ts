import { METRICS } from '../report/metrics.ts'
import { formatNumber, formatPrecise, formatSpread } from '../report/number.ts'
import type { Comparison, Pair } from './comparison.ts'
import { SIDE_LABELS } from './side-message.ts'

const HEAD = ['work', 'what', 'base', 'this', 'this/base', 'ranges', 'medians', 'verdict']

/** The comparison as text for a terminal. */
export function comparisonText(comparison: Comparison): string {
  const { base, current, rounds, pairs, failures, notes } = comparison
  return [
    `base: ${base}`,
    `this: ${current}`,
    `${rounds} rounds of each, in turn, after a warm-up; medians, with the range over the rounds behind them`,
    'equal: the ranges overlap, or the medians differ by at most 5 %',
    ...(comparison.isSmoke ? ['a smoke run: its numbers mean nothing'] : []),
    ...(comparison.isComplete ? [] : ['its time was up before the last round']),
    ...notes,
    '',
    ...table([HEAD, ...pairs.map((pair) => rowOf(pair, rounds))]),
    ...failures.map(
      ({ side, work, subject, reason }) => `not measured: ${SIDE_LABELS[side]}, ${work}, ${subject}: ${reason}`,
    ),
    '',
  ].join('\n')
}

function rowOf(pair: Pair, rounds: number): string[] {
  const { work, subject, size, metric, unit, base, current, ratio } = pair
  return [
    `${work} ${formatNumber(size)}`,
    [subject === 'Carillon' ? '' : `${subject}:`, METRICS[metric]?.label ?? metric, unit].filter(Boolean).join(' '),
    formatSpread(base),
    formatSpread(current),
    ratio === null ? '–' : formatPrecise(ratio),
    pair.areRangesOverlapping ? 'overlap' : 'apart',
    pair.areMediansClose ? 'within 5 %' : 'apart',
    base.values.length < rounds ? `${pair.verdict} (${base.values.length} of ${rounds} rounds)` : pair.verdict,
  ]
}

function table(rows: readonly (readonly string[])[]): string[] {
  const widths = HEAD.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
}
