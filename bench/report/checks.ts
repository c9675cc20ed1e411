import type { Check, Failure, Figure, Results } from '../results.ts'
import { formatNumber, formatPrecise } from './number.ts'

/** The peer that goals 1 and 4 compare with. */
export const BULLMQ_ON_REDIS = 'BullMQ on Redis'

/** Selects a figure. Without `size` it is the figure of the work's only size. */
interface Source {
  readonly work: string
  readonly metric: string
  readonly subject: string
  readonly size?: number
}

interface Rule {
  readonly figure: number
  readonly id: string
  readonly title: string
  readonly read: Source
  /** A figure that is added, if given. */
  readonly plus?: Source
  /** A figure that the sum is divided by, if given. */
  readonly against?: Source
  readonly is: 'at least' | 'at most' | 'above' | 'under'
  readonly limit: number
  readonly unit: string
}

const HERD = 60_000
const MILLION = 1_000_000
const DRAIN = { work: 'drain', metric: 'slotsPerSecond', size: HERD }
const CREATE = { work: 'create', metric: 'perSecond' }
const IDLE = { work: 'idle', subject: 'Carillon', size: MILLION }
const AUDIT = { work: 'audit', subject: 'Carillon', size: 100_000 }
const SCALE = { work: 'scale', subject: 'Carillon' }

const RULES: readonly Rule[] = [
  {
    figure: 1,
    id: 'drain-limit',
    title: 'Drain of 60,000, as a share of the limit',
    read: { ...DRAIN, subject: 'Carillon' },
    against: { ...DRAIN, subject: 'the limit' },
    is: 'at least',
    limit: 0.7,
    unit: '',
  },
  {
    figure: 1,
    id: 'drain-bullmq',
    title: 'Drain of 60,000, against BullMQ on Redis',
    read: { ...DRAIN, subject: 'Carillon' },
    against: { ...DRAIN, subject: BULLMQ_ON_REDIS },
    is: 'at least',
    limit: 4,
    unit: 'times',
  },
  {
    figure: 2,
    id: 'lateness-p50',
    title: 'Lateness of sparse slots, p50',
    read: { work: 'lateness', metric: 'p50', subject: 'Carillon' },
    is: 'at most',
    limit: 3,
    unit: 'ms',
  },
  {
    figure: 2,
    id: 'lateness-p99',
    title: 'Lateness of sparse slots, p99',
    read: { work: 'lateness', metric: 'p99', subject: 'Carillon' },
    is: 'at most',
    limit: 10,
    unit: 'ms',
  },
  {
    figure: 2,
    id: 'scale-p50',
    title: 'Lateness p50 with 1M schedules held, against 10,000',
    read: { ...SCALE, metric: 'p50', size: MILLION },
    against: { ...SCALE, metric: 'p50', size: 10_000 },
    is: 'at most',
    limit: 1.2,
    unit: 'times',
  },
  {
    figure: 2,
    id: 'scale-p99',
    title: 'Lateness p99 with 1M schedules held, against 10,000',
    read: { ...SCALE, metric: 'p99', size: MILLION },
    against: { ...SCALE, metric: 'p99', size: 10_000 },
    is: 'at most',
    limit: 1.2,
    unit: 'times',
  },
  {
    figure: 2,
    id: 'retries-p50',
    title: 'Lateness of retries, p50',
    read: { work: 'waiting', metric: 'p50', subject: 'Carillon, retries' },
    is: 'under',
    limit: 10,
    unit: 'ms',
  },
  {
    figure: 2,
    id: 'run-now-p50',
    title: 'Lateness of run-now, p50',
    read: { work: 'waiting', metric: 'p50', subject: 'Carillon, run-now' },
    is: 'under',
    limit: 10,
    unit: 'ms',
  },
  {
    figure: 3,
    id: 'herd-bystander',
    title: 'A bystander due with a herd of 60,000 starts after',
    read: { work: 'herd', metric: 'bystanderMs', subject: 'Carillon', size: HERD },
    is: 'at most',
    limit: 100,
    unit: 'ms',
  },
  {
    figure: 4,
    id: 'create-bare',
    title: 'Creates through the library, as a share of a bare transaction',
    read: { ...CREATE, subject: 'Carillon, library' },
    against: { ...CREATE, subject: 'a bare transaction' },
    is: 'at least',
    limit: 0.6,
    unit: '',
  },
  {
    figure: 4,
    id: 'create-bullmq',
    title: "Creates through the library, against BullMQ's upsert",
    read: { ...CREATE, subject: 'Carillon, library' },
    against: { ...CREATE, subject: BULLMQ_ON_REDIS },
    is: 'above',
    limit: 1,
    unit: 'times',
  },
  {
    figure: 4,
    id: 'import',
    title: 'Bulk import of 100,000',
    read: { work: 'import', metric: 'perSecond', subject: 'Carillon', size: 100_000 },
    is: 'at least',
    limit: 30_000,
    unit: '/s',
  },
  {
    figure: 5,
    id: 'http',
    title: 'HTTP dispatch, as a share of a bare undici loop',
    read: { work: 'http', metric: 'perSecond', subject: 'Carillon' },
    against: { work: 'http', metric: 'perSecond', subject: 'a bare undici loop' },
    is: 'at least',
    limit: 0.6,
    unit: '',
  },
  {
    figure: 6,
    id: 'idle-cpu',
    title: 'Idle at 1M schedules, of one core: the worker alone',
    read: { ...IDLE, metric: 'cpuPercent' },
    is: 'under',
    limit: 2,
    unit: '%',
  },
  {
    figure: 6,
    id: 'idle-cpu-all',
    title: 'Idle at 1M schedules, of one core: worker and Postgres together',
    read: { ...IDLE, metric: 'cpuPercent' },
    plus: { ...IDLE, metric: 'postgresCpuPercent' },
    is: 'under',
    limit: 2,
    unit: '%',
  },
  {
    figure: 6,
    id: 'audit-cpu',
    title: 'Audit of 100,000 slots an hour, of one core: worker and Postgres together',
    read: { ...AUDIT, metric: 'cpuPercent' },
    plus: { ...AUDIT, metric: 'postgresCpuPercent' },
    is: 'under',
    limit: 1,
    unit: '%',
  },
  {
    figure: 6,
    id: 'idle-memory',
    title: 'Idle at 1M schedules, memory of the worker',
    read: { ...IDLE, metric: 'workerMegabytes' },
    is: 'under',
    limit: 200,
    unit: 'MB',
  },
]

const HOLDS: Readonly<Record<Rule['is'], (value: number, limit: number) => boolean>> = {
  'at least': (value, limit) => value >= limit,
  'at most': (value, limit) => value <= limit,
  above: (value, limit) => value > limit,
  under: (value, limit) => value < limit,
}

/**
 * Compares the figures with the goals. Only the full plan can reach a goal, smaller plans only show their values. A goal is neither reached
 * nor missed if a round of its work failed, because the median leaves that round out. `noteOf` returns the explanation of a goal that is
 * not reached.
 */
export function checkFigures(
  { figures, failures, plan }: Pick<Results, 'figures' | 'failures' | 'plan'>,
  noteOf: (id: string) => string | undefined,
): readonly Check[] {
  return RULES.map((rule) => {
    const check = checkOne(rule, figures)
    if (check.isReached !== null && hasFailed(rule, failures)) {
      return { ...check, measured: `${check.measured}, a round failed`, isReached: null }
    }
    if (plan !== 'full') return { ...check, isReached: null }
    const note = check.isReached === false ? noteOf(rule.id) : undefined
    return note === undefined ? check : { ...check, standsInTheWay: note }
  })
}

function checkOne(rule: Rule, figures: readonly Figure[]): Check {
  const { figure, id, title, is, limit, unit } = rule
  const check = { figure, id, title, wanted: join(is, formatNumber(limit), unit) }
  const value = valueOf(rule, figures)
  if (value === undefined) return { ...check, measured: measuredElsewhere(rule, figures), isReached: null }
  return { ...check, measured: join(formatPrecise(value), unit), isReached: HOLDS[is](value, limit) }
}

function hasFailed({ read, against }: Rule, failures: readonly Failure[]): boolean {
  return [read, against].some((source) => source !== undefined && failures.some((failure) => isAt(source, failure)))
}

function valueOf({ read, plus, against }: Rule, figures: readonly Figure[]): number | undefined {
  const value = sumOf(plus === undefined ? [read] : [read, plus], figures)
  if (against === undefined || value === undefined) return value
  const other = find(against, figures)?.median
  return other === undefined ? undefined : value / other
}

/** Undefined if one of the figures was not measured. */
function sumOf(sources: readonly Source[], figures: readonly Figure[]): number | undefined {
  let sum = 0
  for (const source of sources) {
    const figure = find(source, figures)
    if (figure === undefined) return undefined
    sum += figure.median
  }
  return sum
}

/** A smaller run shows what it measured, but does not claim that a goal is reached. */
function measuredElsewhere(rule: Rule, figures: readonly Figure[]): string {
  const size = largestSize(rule.read, figures)
  if (rule.read.size === undefined || size === undefined) return 'not measured'
  const against = rule.against && { ...rule.against, size: againstSize(rule, size, figures) }
  const plus = rule.plus && { ...rule.plus, size }
  const elsewhere = { ...rule, read: { ...rule.read, size }, ...(plus && { plus }), ...(against && { against }) }
  const value = valueOf(elsewhere, figures)
  return value === undefined ? 'not measured' : join(formatPrecise(value), rule.unit, `at ${formatNumber(size)}`)
}

/** The size of the figure to divide by: the smallest size for the same subject, the same size for another subject. */
function againstSize({ read, against }: Rule, size: number, figures: readonly Figure[]): number {
  if (against === undefined || against.subject !== read.subject) return size
  return Math.min(...sizesOf(against, figures))
}

function find(source: Source, figures: readonly Figure[]): Figure | undefined {
  return figures.find((figure) => figure.metric === source.metric && isAt(source, figure))
}

function isAt(source: Source, place: Pick<Figure, 'work' | 'subject' | 'size'>): boolean {
  const { work, subject, size } = place
  return source.work === work && source.subject === subject && (source.size ?? size) === size
}

function isOf(source: Source, figure: Figure): boolean {
  return figure.work === source.work && figure.metric === source.metric && figure.subject === source.subject
}

function sizesOf(source: Source, figures: readonly Figure[]): number[] {
  return figures.filter((figure) => isOf(source, figure)).map(({ size }) => size)
}

function largestSize(source: Source, figures: readonly Figure[]): number | undefined {
  return sizesOf(source, figures).toSorted((a, b) => b - a)[0]
}

function join(...words: readonly string[]): string {
  return words.filter((word) => word !== '').join(' ')
}

/** The goals and their results, as text for a terminal. */
export function checksText({ checks, failures }: Pick<Results, 'checks' | 'failures'>): string {
  const width = Math.max(...checks.map(({ title }) => title.length))
  const lines = checks.map(({ figure, title, wanted, measured, isReached }) => {
    const verdict = isReached === null ? '-' : isReached ? 'yes' : 'NO'
    return `${figure}  ${title.padEnd(width)}  ${wanted.padEnd(18)}  ${measured.padEnd(22)}  ${verdict}`
  })
  const failed = failures.map(
    ({ work, subject, size, reason }) => `not measured: ${work}, ${subject}, ${size}: ${reason}`,
  )
  return `${[...lines, ...failed].join('\n')}\n`
}
