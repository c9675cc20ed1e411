import type { Sizes, WorkName } from './work.ts'

export type PlanName = 'full' | 'quick' | 'smoke'

/** How much is measured, how often, and how long it may take. */
export interface BenchPlan {
  readonly name: PlanName
  readonly sizes: Sizes
  readonly rounds: number
  /** The works that the peers run too. */
  readonly worksOfPeers: readonly WorkName[]
  /** How many subjects run at the same time. With more than one the numbers are no measurement, but most subjects wait most of the time. */
  readonly atOnce: number
  /** How many works run at the same time. */
  readonly worksAtOnce: number
  /** True if Postgres waits for the disk, as it does by default. */
  readonly isDurable: boolean
  /** The time limit in milliseconds for one round of one subject. */
  readonly patienceMs: number
  /** The time limit in milliseconds for the whole run. The results so far are written. */
  readonly limitMs: number
}

const SECOND = 1000
const MINUTE = 60 * SECOND

/**
 * A retry is due 0.9 to 1 s after its slot. With this spacing it falls between two other slots, at least 80 ms away from both. So nothing
 * else is due at its instant.
 */
const RETRY_SPACING_MS = 273

/** The works in the order in which they run. The works with a million schedules come last, when no other work needs the disk. */
export const WORK_NAMES: readonly WorkName[] = [
  'drain',
  'lateness',
  'waiting',
  'herd',
  'create',
  'import',
  'http',
  'workers',
  'audit',
  'scale',
  'idle',
  'pages',
]

const FULL: BenchPlan = {
  name: 'full',
  sizes: {
    drain: { counts: [1000, 10_000, 60_000], patienceMs: 45 * SECOND },
    lateness: { slots: 300, spacingMs: 197 },
    waiting: { runs: 300, retrySpacingMs: RETRY_SPACING_MS, askSpacingMs: 97 },
    herd: { count: 60_000 },
    scale: {
      held: [
        { schedules: 10_000, ledgerRows: 0 },
        { schedules: 100_000, ledgerRows: 0 },
        { schedules: 1_000_000, ledgerRows: 5_000_000 },
      ],
      drained: 10_000,
      slots: 200,
      spacingMs: 97,
    },
    create: { count: 4000, clients: 20 },
    import: { count: 100_000 },
    http: { count: 20_000 },
    idle: { schedules: 1_000_000, seconds: 45 },
    workers: { count: 60_000 },
    audit: { slots: 100_000 },
    pages: { schedules: 1_000_000, ledgerRows: 5_000_000, requests: 500 },
  },
  rounds: 3,
  worksOfPeers: ['drain', 'lateness', 'create'],
  atOnce: 1,
  worksAtOnce: 1,
  isDurable: true,
  patienceMs: 10 * MINUTE,
  limitMs: 120 * MINUTE,
}

const QUICK: BenchPlan = {
  name: 'quick',
  sizes: {
    drain: { counts: [1000, 10_000], patienceMs: MINUTE },
    lateness: { slots: 100, spacingMs: 97 },
    waiting: { runs: 100, retrySpacingMs: RETRY_SPACING_MS, askSpacingMs: 47 },
    herd: { count: 10_000 },
    scale: {
      held: [
        { schedules: 10_000, ledgerRows: 0 },
        { schedules: 100_000, ledgerRows: 100_000 },
      ],
      drained: 2000,
      slots: 100,
      spacingMs: 47,
    },
    create: { count: 1000, clients: 20 },
    import: { count: 20_000 },
    http: { count: 4000 },
    idle: { schedules: 100_000, seconds: 10 },
    workers: { count: 10_000 },
    audit: { slots: 10_000 },
    pages: { schedules: 100_000, ledgerRows: 100_000, requests: 100 },
  },
  rounds: 1,
  worksOfPeers: ['drain', 'lateness', 'create'],
  atOnce: 1,
  worksAtOnce: 1,
  isDurable: true,
  patienceMs: 2 * MINUTE,
  limitMs: 20 * MINUTE,
}

/**
 * Shows only that everything still runs. Its time limits end what hangs, not what is slow. No peer measures sparse slots here, because some
 * peers wait for the next minute.
 */
const SMOKE: BenchPlan = {
  name: 'smoke',
  sizes: {
    drain: { counts: [20], patienceMs: 2 * MINUTE },
    lateness: { slots: 5, spacingMs: 47 },
    waiting: { runs: 5, retrySpacingMs: 47, askSpacingMs: 7 },
    herd: { count: 50 },
    scale: {
      held: [
        { schedules: 10, ledgerRows: 10 },
        { schedules: 100, ledgerRows: 100 },
      ],
      drained: 20,
      slots: 5,
      spacingMs: 47,
    },
    create: { count: 20, clients: 2 },
    import: { count: 50 },
    http: { count: 20 },
    idle: { schedules: 100, seconds: 1 },
    workers: { count: 50 },
    audit: { slots: 50 },
    pages: { schedules: 100, ledgerRows: 100, requests: 5 },
  },
  rounds: 1,
  worksOfPeers: ['drain', 'create'],
  atOnce: 3,
  worksAtOnce: 3,
  isDurable: false,
  patienceMs: 5 * MINUTE,
  limitMs: 15 * MINUTE,
}

export const PLANS: Readonly<Record<PlanName, BenchPlan>> = { full: FULL, quick: QUICK, smoke: SMOKE }
