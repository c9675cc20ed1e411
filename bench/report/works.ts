import type { WorkName } from '../work.ts'

/** One chart of a work. */
export interface ChartOfWork {
  readonly metric: string
  readonly title: string
  readonly subtitle: string
  /** The subject that is drawn as a line instead of a bar. */
  readonly limitSubject?: string
  readonly wanted?: number
}

/** The text of the page about a work. */
export interface WorkText {
  /** What the work does, and which span of time it measures. */
  readonly text: string
  /** What the size counts. */
  readonly sizeWord: string
  readonly charts: readonly ChartOfWork[]
}

const MORE = 'more is better'
const LESS = 'less is better'

export const WORK_TEXTS: Readonly<Record<WorkName, WorkText>> = {
  drain: {
    text:
      'So many schedules come due at one instant; the worker is up and waits for it. The target does nothing, and ' +
      'everything that a system keeps of a run is written. The time goes from that instant to the last end. *The limit* ' +
      "writes Carillon's rows with batched SQL, the ids known beforehand, claiming nothing.",
    sizeWord: 'slots',
    charts: [
      {
        metric: 'slotsPerSecond',
        title: 'Drain: slots a second',
        subtitle: `all due at one instant, the ledger written; ${MORE}`,
        limitSubject: 'the limit',
      },
    ],
  },
  lateness: {
    text:
      'Slots that come due one by one. Each number is the time from the nominal instant to the call of the target. Who ' +
      'keeps a coarser grid, whole seconds or whole minutes, has its slots where its grid allows.',
    sizeWord: 'slots',
    charts: [
      {
        metric: 'p50',
        title: 'Lateness of sparse slots, p50',
        subtitle: `from the nominal instant to the call of the target; ${LESS}`,
      },
      {
        metric: 'p99',
        title: 'Lateness of sparse slots, p99',
        subtitle: `from the nominal instant to the call of the target; ${LESS}`,
      },
    ],
  },
  waiting: {
    text:
      'Runs that wait in the ledger. *Retries*: the first attempt of each slot fails, and the lateness is the time from the end ' +
      'of its backoff, as the worker reported it, to the call of the second attempt. *Run-now*: the library is asked for a run ' +
      'while nothing is due, and the lateness is the time from the instant that Postgres writes down as its due time, which is ' +
      'before the commit, to the call of the target. *From the commit* counts from the answer to that commit, *from the ask* ' +
      'from the call of the library. The peers are not measured: their backoffs and immediate jobs follow rules of their own.',
    sizeWord: 'runs',
    charts: [
      {
        metric: 'p50',
        title: 'Lateness of waiting runs, p50',
        subtitle: `from the instant a run may be taken to the call of the target; ${LESS}`,
        wanted: 10,
      },
      {
        metric: 'p99',
        title: 'Lateness of waiting runs, p99',
        subtitle: `from the instant a run may be taken to the call of the target; ${LESS}`,
      },
    ],
  },
  herd: {
    text: 'One tenant has so many schedules due at one instant, another tenant has one, due at the same instant.',
    sizeWord: 'slots in the herd',
    charts: [
      {
        metric: 'bystanderMs',
        title: 'A bystander beside a herd',
        subtitle: `from the instant both are due to the call of the bystander's target; ${LESS}`,
        wanted: 100,
      },
    ],
  },
  scale: {
    text: 'Drain and lateness again, with many more schedules held that are not due, and old rows in the ledger.',
    sizeWord: 'schedules held',
    charts: [
      { metric: 'p50', title: 'Lateness by schedules held, p50', subtitle: `of sparse slots; ${LESS}` },
      { metric: 'p99', title: 'Lateness by schedules held, p99', subtitle: `of sparse slots; ${LESS}` },
      { metric: 'slotsPerSecond', title: 'Drain by schedules held', subtitle: `slots a second; ${MORE}` },
    ],
  },
  create: {
    text:
      'Schedules made one by one by several clients at once. *A bare transaction* inserts the rows that Carillon inserts, ' +
      'without validation, and without a look at the cadence, quotas or rights.',
    sizeWord: 'creates',
    charts: [
      { metric: 'perSecond', title: 'Single creates a second', subtitle: `by several clients at once; ${MORE}` },
    ],
  },
  import: {
    text: 'Many schedules made in one go. *Bare inserts* write the same rows in batches, without validation.',
    sizeWord: 'schedules',
    charts: [{ metric: 'perSecond', title: 'Bulk import, schedules a second', subtitle: MORE, wanted: 30_000 }],
  },
  http: {
    text:
      'Slots that call a target over HTTP on loopback, ledger written, against a loop that only sends the same requests with ' +
      'undici.',
    sizeWord: 'requests',
    charts: [{ metric: 'perSecond', title: 'HTTP dispatch, requests a second', subtitle: `to loopback; ${MORE}` }],
  },
  idle: {
    text: 'A worker in a process of its own with so many schedules held and nothing due. CPU is in percent of one core.',
    sizeWord: 'schedules held',
    charts: [
      { metric: 'cpuPercent', title: 'Idle: CPU of the worker', subtitle: `percent of one core; ${LESS}`, wanted: 2 },
      { metric: 'workerMegabytes', title: 'Idle: memory of the worker', subtitle: LESS, wanted: 200 },
    ],
  },
  workers: {
    text: 'Drain by one worker process and by two, on the same machine.',
    sizeWord: 'slots',
    charts: [{ metric: 'slotsPerSecond', title: 'Two workers against one', subtitle: `slots a second; ${MORE}` }],
  },
  audit: {
    text:
      'So many schedules, each with a cadence of its own, have had one slot each, which ran. Then an audit of everything is asked ' +
      'for. CPU is what the audit used, as percent of one core for an hour: what it takes to compare so many slots in each hour. ' +
      'The audit of recent slots that goes on all the time does a part of this work, and rests for 99 times as long as it took.',
    sizeWord: 'slots',
    charts: [
      {
        metric: 'cpuPercent',
        title: 'Audit: CPU of the worker',
        subtitle: `percent of one core, hourly; ${LESS}`,
        wanted: 1,
      },
    ],
  },
  pages: {
    text: 'Reads through the library at scale: how long one page takes. No HTTP is in it.',
    sizeWord: 'schedules held',
    charts: [{ metric: 'p99', title: 'Pages at scale, p99', subtitle: `one page; ${LESS}` }],
  },
}
