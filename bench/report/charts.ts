import type { Figure } from '../results.ts'
import type { WorkName } from '../work.ts'
import type { Bar, Chart, Mark } from './chart.ts'
import { METRICS } from './metrics.ts'
import { formatNumber } from './number.ts'
import { orderSubjects } from './table.ts'
import { WORK_TEXTS, type ChartOfWork } from './works.ts'

export interface NamedChart {
  /** The name in the folder `charts`. */
  readonly file: string
  readonly chart: Chart
}

/** The charts of one work. There is none for a metric that was not measured. */
export function chartsOf(work: WorkName, figures: readonly Figure[]): readonly NamedChart[] {
  return WORK_TEXTS[work].charts.flatMap((wanted) => {
    const ofMetric = figures.filter((figure) => figure.work === work && figure.metric === wanted.metric)
    if (ofMetric.length === 0) return []
    return [
      { file: `${work}-${fileName(wanted.metric)}.png`, chart: chartOf(wanted, ofMetric, WORK_TEXTS[work].sizeWord) },
    ]
  })
}

function chartOf(wanted: ChartOfWork, figures: readonly Figure[], sizeWord: string): Chart {
  const subjects = new Set(figures.map(({ subject }) => subject))
  const size = Math.max(...figures.map((figure) => figure.size))
  const isBySize = subjects.size === 1 && figures.length > 1
  const shown = isBySize ? figures : largestOfEach(figures)
  const unit = figures[0]?.unit ?? ''
  const isBar = (figure: Figure): boolean => figure.subject !== wanted.limitSubject
  const bars = shown.filter(isBar)
  const ordered = isBySize ? bars.toSorted((a, b) => a.size - b.size) : sorted(bars, wanted.metric)
  return {
    title: isBySize ? wanted.title : `${wanted.title} (${formatNumber(size)} ${sizeWord})`,
    subtitle: `${wanted.subtitle}; medians, the line is the range over rounds`,
    unit,
    bars: ordered.map((figure) => barOf(figure, labelOf(figure, { isBySize, size, sizeWord }), isOwn(figure.subject))),
    marks: [...marksOf(wanted, unit), ...shown.filter((figure) => !isBar(figure)).map(limitMark)],
  }
}

/** A peer that gave up at the largest size is shown at the largest size that it completed, with that size beside its name. */
function largestOfEach(figures: readonly Figure[]): readonly Figure[] {
  const largest = new Map<string, Figure>()
  for (const figure of figures) {
    if (figure.size >= (largest.get(figure.subject)?.size ?? 0)) largest.set(figure.subject, figure)
  }
  return [...largest.values()]
}

function sorted(figures: readonly Figure[], metric: string): readonly Figure[] {
  const order = orderSubjects(
    figures.map(({ subject }) => subject),
    figures,
    { metric },
  )
  return figures.toSorted((a, b) => order.indexOf(a.subject) - order.indexOf(b.subject))
}

function labelOf(figure: Figure, p: { isBySize: boolean; size: number; sizeWord: string }): string {
  if (p.isBySize) return `${formatNumber(figure.size)} ${p.sizeWord}`
  return figure.size === p.size ? figure.subject : `${figure.subject} (${formatNumber(figure.size)})`
}

function barOf({ median, values }: Figure, label: string, isOwn: boolean): Bar {
  return { label, value: median, low: Math.min(...values), high: Math.max(...values), isOwn }
}

/** Beside other subjects Carillon appears under its name. In works without peers, its parts have names of their own. */
function isOwn(subject: string): boolean {
  return subject.startsWith('Carillon') || OWN_PARTS.has(subject)
}

const OWN_PARTS: ReadonlySet<string> = new Set([
  'one worker',
  'two workers',
  'list of schedules',
  'runs of a schedule',
  'searched list',
])

function marksOf({ wanted, metric }: ChartOfWork, unit: string): readonly Mark[] {
  if (wanted === undefined) return []
  const words = METRICS[metric]?.isLessBetter === true ? 'at most' : 'at least'
  return [{ label: `wanted: ${words} ${formatNumber(wanted)} ${unit}`, value: wanted }]
}

function limitMark({ subject, median, unit }: Figure): Mark {
  return { label: `${subject}: ${formatNumber(median)} ${unit}`, value: median }
}

function fileName(metric: string): string {
  return metric.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}
