import { createPool } from '@carillon/core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { startBenchPostgres, type BenchPostgres } from '../../bench/bench-postgres.ts'
import { BenchRun, orderOfRound } from '../../bench/bench-run.ts'
import { Gathered } from '../../bench/gathered.ts'
import { LoadedTooLate, leadOf } from '../../bench/lead-time.ts'
import { PLANS } from '../../bench/plan.ts'
import { Progress } from '../../bench/progress.ts'
import { runWorks, type Works } from '../../bench/run-works.ts'
import type { Bench, Part, Reading } from '../../bench/work.ts'

let postgres: BenchPostgres

beforeAll(async () => {
  postgres = await startBenchPostgres({ isDurable: false })
})
afterAll(() => postgres[Symbol.asyncDispose]())

const READING: Reading = { metric: 'p50', unit: 'ms', value: 1 }

function setUp(p: { rounds: number; patienceMs?: number; atOnce?: number; clockStepMs?: () => number }) {
  const gathered = new Gathered()
  const lines: string[] = []
  const progress = new Progress((text) => lines.push(text))
  const interruption = new AbortController()
  const { patienceMs = 60_000, atOnce = 1, clockStepMs = () => 0 } = p
  const { signal } = interruption
  const run = new BenchRun({ postgres, redis: undefined, gathered, progress, signal, patienceMs, atOnce, clockStepMs })
  const bench = run.viewOf({ work: 'drain', rounds: p.rounds, peers: [] })
  return { bench, run, gathered, lines, progress, interruption }
}

function part(subject: string, measure: Part['measure'], rounds?: number): Part {
  return { subject, size: 1, measure, ...(rounds === undefined ? {} : { rounds }) }
}

describe('the rounds of a run', () => {
  test('every part has its first round before any part has its second, and each round begins with another part', async () => {
    const { bench, gathered } = setUp({ rounds: 3 })
    const order: string[] = []
    const noting = (subject: string, rounds?: number): Part =>
      part(subject, () => Promise.resolve([{ ...READING, value: order.push(subject) }]), rounds)

    await bench.interleave([noting('a'), noting('b'), noting('dear', 1)], 'none')

    expect(order).toEqual(['a', 'b', 'dear', 'b', 'a', 'a', 'b'])
    expect(gathered.figures.map(({ subject, values }) => [subject, values])).toEqual([
      ['a', [1, 5, 6]],
      ['b', [2, 4, 7]],
      ['dear', [3]],
    ])
  })

  test('each round begins with the next size, and each size with the next subject', () => {
    const parts = [1, 2].flatMap((size) =>
      ['a', 'b', 'c'].map((subject) => ({ ...part(subject, () => Promise.resolve([])), size })),
    )
    const orders = [1, 2, 3].map((round) => orderOfRound(parts, round).map(({ subject, size }) => `${subject}${size}`))

    expect(orders).toEqual([
      ['a1', 'b1', 'c1', 'a2', 'b2', 'c2'],
      ['b2', 'c2', 'a2', 'b1', 'c1', 'a1'],
      ['c1', 'a1', 'b1', 'c2', 'a2', 'b2'],
    ])
  })

  test.each([3, -3])('a round during which the system clock was set by %d ms is not a measurement', async (stepMs) => {
    const { bench, gathered } = setUp({ rounds: 1, clockStepMs: () => stepMs })

    await bench.interleave([part('a', () => Promise.resolve([READING]))], 'none')

    expect(gathered.figures).toEqual([])
    expect(gathered.failures.map(({ reason }) => reason)).toEqual([
      `expected a system clock that is not set during the run, got a step of ${stepMs} ms: run the bench again`,
    ])
  })

  test('a value that is not a number fails its part', async () => {
    const { bench, gathered } = setUp({ rounds: 1 })

    await bench.interleave([part('a', () => Promise.resolve([{ ...READING, value: Number.NaN }]))], 'none')

    expect(gathered.figures).toEqual([])
    expect(gathered.failures.map(({ reason }) => reason)).toEqual([
      'expected p50 of a finite number from 0 on, got NaN ms: nothing of this round is kept',
    ])
  })

  test('a failed part is recorded with its reason and left out of later rounds, and the other parts continue', async () => {
    const { bench, gathered, lines } = setUp({ rounds: 2 })
    const fine = part('fine', () => Promise.resolve([READING]))

    await bench.interleave([part('broken', () => Promise.reject(new Error('no luck'))), fine], 'none')

    expect(gathered.failures).toEqual([{ work: 'drain', subject: 'broken', size: 1, round: 1, reason: 'no luck' }])
    expect(gathered.figures).toMatchObject([{ subject: 'fine', values: [1, 1] }])
    expect(lines.join('')).toContain('drain 1 · broken · round 1 of 2 … failed: no luck')
  })

  test('a part whose schedules came due before they were loaded is measured again with twice the lead', async () => {
    const { bench, gathered } = setUp({ rounds: 1 })
    const leads: number[] = []
    const busy = part('busy', () => {
      leads.push(leadOf(1))
      return leads.length < 4 ? Promise.reject(new LoadedTooLate('too late')) : Promise.resolve([READING])
    })
    const hopeless = part('hopeless', () => Promise.reject(new LoadedTooLate('too late')))

    await bench.interleave([busy, hopeless], 'none')

    expect(leads).toEqual([1, 2, 4, 8])
    expect(gathered.figures).toMatchObject([{ subject: 'busy', values: [1] }])
    expect(gathered.failures).toMatchObject([{ subject: 'hopeless', reason: 'too late' }])
  })

  test('a part that never ends is abandoned and recorded as failed', async () => {
    const { bench, gathered } = setUp({ rounds: 1, patienceMs: 20 })

    await bench.interleave([part('endless', () => Promise.withResolvers<never>().promise)], 'none')

    expect(gathered.failures).toMatchObject([{ subject: 'endless', reason: 'expected an end within 0.02 s, got none' }])
  })

  test('an interrupt ends the part at once, records no failure and starts no other part', async () => {
    const { bench, gathered, interruption } = setUp({ rounds: 1 })
    const begun: string[] = []
    const endless = part('endless', () => {
      begun.push('endless')
      interruption.abort(new Error('Ctrl-C'))
      return Promise.withResolvers<never>().promise
    })
    const never = part('never', () => Promise.resolve([{ ...READING, value: begun.push('never') }]))

    await expect(bench.interleave([endless, never], 'none')).rejects.toThrow('Ctrl-C')

    expect(begun).toEqual(['endless'])
    expect(gathered.failures).toEqual([])
  })
})

describe('the databases of a run', () => {
  async function databases(): Promise<number> {
    const url = await postgres.createEmptyDatabase('counting')
    const pool = createPool({ connectionString: url })
    const { rows } = await pool.query<{ count: number }>(
      `select count(*)::int as count from pg_database where datname ~ '^bench_[0-9]+$'`,
    )
    await pool.end()
    await postgres.dropDatabase('counting')
    return rows[0]?.count ?? -1
  }

  test('each part of each round has an empty database of its own, which is dropped afterwards, even if the part failed', async () => {
    const { bench, gathered } = setUp({ rounds: 2, atOnce: 2 })
    const urls = new Set<string>()
    const measure: Part['measure'] = async ({ postgresUrl }) => {
      urls.add(postgresUrl)
      const pool = createPool({ connectionString: postgresUrl })
      await pool.query('create table carillon.mine ()')
      await pool.end()
      return [READING]
    }
    const broken = part('broken', ({ postgresUrl }) =>
      Promise.reject(new Error(String(urls.add(postgresUrl).size > 0))),
    )

    await bench.interleave([part('a', measure), part('b', measure), broken], { isMigrated: true })

    expect(urls.size).toBe(5)
    expect(gathered.failures).toMatchObject([{ subject: 'broken' }])
    expect(await databases()).toBe(0)
  })

  test('resources that works share are created once and removed with the run', async () => {
    const { bench, run } = setUp({ rounds: 1 })
    const made: string[] = []
    const make = (): Promise<AsyncDisposable> => {
      made.push('made')
      return Promise.resolve({ [Symbol.asyncDispose]: () => Promise.resolve(void made.push('gone')) })
    }

    const [first, second] = [await bench.shared('held', make), await bench.shared('held', make)]
    await run[Symbol.asyncDispose]()

    expect(first).toBe(second)
    expect(made).toEqual(['made', 'gone'])
  })
})

test('a work that fails as a whole is recorded, and the next work runs', async () => {
  const { run, gathered, progress, interruption } = setUp({ rounds: 1 })
  const idle = (_bench: Bench): Promise<void> => Promise.resolve()
  const work = <Name extends keyof Works>(name: Name, measure = idle) => ({ name, title: `the ${name}`, measure })
  const works: Works = {
    drain: work('drain', () => Promise.reject(new Error('nothing to drain'))),
    lateness: work('lateness', (bench) => bench.interleave([part('soon', () => Promise.resolve([READING]))], 'none')),
    waiting: work('waiting'),
    herd: work('herd'),
    create: work('create'),
    import: work('import'),
    http: work('http'),
    workers: work('workers'),
    audit: work('audit'),
    scale: work('scale'),
    idle: work('idle'),
    pages: work('pages'),
  }

  const records = await runWorks({
    run,
    works,
    names: ['drain', 'lateness'],
    plan: PLANS.smoke,
    rounds: 1,
    peers: [],
    progress,
    signal: interruption.signal,
  })

  expect(records).toMatchObject([
    { name: 'drain', title: 'the drain', sizes: PLANS.smoke.sizes.drain },
    { name: 'lateness', rounds: 1 },
  ])
  expect(gathered.failures).toMatchObject([{ work: 'drain', subject: 'the whole work', reason: 'nothing to drain' }])
  expect(gathered.figures).toMatchObject([{ work: 'lateness', subject: 'soon' }])
})
