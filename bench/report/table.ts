import type { Failure, Figure } from '../results.ts'
import { METRICS } from './metrics.ts'
import { formatNumber, formatSpread } from './number.ts'

type Side = 'left' | 'right'
type CellPlace = Pick<Figure, 'subject' | 'size' | 'metric'>

/** A table in Markdown. Without `sides`, the first column is aligned left and the others right. */
export function markdownTable(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  sides: readonly Side[] = head.map((_, column) => (column === 0 ? 'left' : 'right')),
): string {
  const line = (cells: readonly string[]): string => `| ${cells.map(escapeBar).join(' | ')} |`
  const rule = `| ${sides.map((side) => (side === 'left' ? '---' : '---:')).join(' | ')} |`
  return [line(head), rule, ...rows.map(line)].join('\n')
}

function escapeBar(cell: string): string {
  return cell.replaceAll('|', String.raw`\|`)
}

/**
 * The figures of one work. If several subjects have several sizes each, there is one table per metric with a column per size. Otherwise
 * there is one table with a column per metric, and a row per subject or per size of the only subject.
 */
export function figureTables(
  figures: readonly Figure[],
  failures: readonly Failure[],
  { sizeWord, rounds }: { sizeWord: string; rounds: number },
): string {
  const cellAt = (place: CellPlace): string => cell(figures, failures, place, rounds)
  const subjects = unique([...figures, ...failures].map(({ subject }) => subject))
  const sizesOf = (subject: string): number[] =>
    unique([...figures, ...failures].filter((one) => one.subject === subject).map(({ size }) => size))
  const sizes = unique(subjects.flatMap(sizesOf)).toSorted((a, b) => a - b)
  const metrics = unique(figures.map(({ metric }) => metric))
  const isOnly = subjects.length === 1
  if (!isOnly && subjects.some((subject) => sizesOf(subject).length > 1)) {
    return metrics.map((metric) => tableOfMetric(metric, { figures, cellAt, subjects, sizes, sizeWord })).join('\n\n')
  }
  const head = [isOnly ? sizeWord : '', ...metrics.map((metric) => headOf(metric, figures))]
  const rowOf = (label: string, place: { subject: string; size: number }): string[] => [
    label,
    ...metrics.map((metric) => cellAt({ ...place, metric })),
  ]
  const rows = isOnly
    ? sizes.map((size) => rowOf(formatNumber(size), { subject: subjects[0] ?? '', size }))
    : orderSubjects(subjects, figures, { metric: metrics[0] ?? '' }).map((subject) =>
        rowOf(subject, { subject, size: sizesOf(subject)[0] ?? 0 }),
      )
  return markdownTable(head, rows)
}

function tableOfMetric(
  metric: string,
  p: {
    figures: readonly Figure[]
    cellAt: (place: CellPlace) => string
    subjects: readonly string[]
    sizes: readonly number[]
    sizeWord: string
  },
): string {
  const ordered = orderSubjects(p.subjects, p.figures, { metric, size: p.sizes.at(-1) ?? 0 })
  const rows = ordered.map((subject) => [subject, ...p.sizes.map((size) => p.cellAt({ subject, size, metric }))])
  return markdownTable(
    [headOf(metric, p.figures), ...p.sizes.map((size) => `${formatNumber(size)} ${p.sizeWord}`)],
    rows,
  )
}

/** Orders the subjects with the best first and those without a figure last. Without a size, each subject is ranked by its own size. */
export function orderSubjects(
  subjects: readonly string[],
  figures: readonly Figure[],
  by: { metric: string; size?: number },
): readonly string[] {
  const isLessBetter = METRICS[by.metric]?.isLessBetter ?? false
  const costOf = (subject: string): number => {
    const figure = figures.find(
      (one) => one.subject === subject && one.metric === by.metric && one.size === (by.size ?? one.size),
    )
    if (figure === undefined) return Number.POSITIVE_INFINITY
    return isLessBetter ? figure.median : -figure.median
  }
  return subjects.toSorted((a, b) => {
    const [left, right] = [costOf(a), costOf(b)]
    return left === right ? 0 : left - right
  })
}

function cell(figures: readonly Figure[], failures: readonly Failure[], place: CellPlace, rounds: number): string {
  const isHere = (one: { subject: string; size: number }): boolean =>
    one.subject === place.subject && one.size === place.size
  const figure = figures.find((one) => isHere(one) && one.metric === place.metric)
  const failed = failures.filter(isHere)
  if (figure === undefined) return failed.length > 0 ? 'failed' : '–'
  // A subject that fails in a round has no value for it and for later rounds. An unexpected error removes no value.
  const measured = figure.values.length
  const isShort = failed.some(({ round }) => round > measured)
  return isShort ? `${formatSpread(figure)} (${measured} of ${rounds} rounds)` : formatSpread(figure)
}

function headOf(metric: string, figures: readonly Figure[]): string {
  const unit = figures.find((figure) => figure.metric === metric)?.unit ?? ''
  const label = METRICS[metric]?.label ?? metric
  return unit === '' ? label : `${label}, ${unit}`
}

function unique<Value>(values: readonly Value[]): Value[] {
  return [...new Set(values)]
}
