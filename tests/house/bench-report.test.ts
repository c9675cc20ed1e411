import { describe, expect, test } from 'vitest'

import { Gathered } from '../../bench/gathered.ts'
import { folderFor, parseOptions } from '../../bench/options.ts'
import { PLANS, WORK_NAMES } from '../../bench/plan.ts'
import { chooseScale, drawChart } from '../../bench/report/chart.ts'
import { chartsOf } from '../../bench/report/charts.ts'
import { BULLMQ_ON_REDIS, checkFigures } from '../../bench/report/checks.ts'
import { formatNumber, formatSpread } from '../../bench/report/number.ts'
import { resultsPage } from '../../bench/report/page.ts'
import { figureTables, markdownTable } from '../../bench/report/table.ts'
import { median, type Check, type Failure, type Figure, type Results } from '../../bench/results.ts'
import { quantiles } from '../../bench/works/quantiles.ts'

function figure(work: string, subject: string, size: number, metric: string, ...values: number[]): Figure {
  return {
    work,
    subject,
    size,
    metric,
    unit: metric === 'slotsPerSecond' ? '/s' : 'ms',
    values,
    median: median(values),
  }
}

function checkOf(
  id: string,
  figures: readonly Figure[],
  { note, failures = [] }: { note?: string; failures?: readonly Failure[] } = {},
): Check | undefined {
  return checkFigures({ figures, failures, plan: 'full' }, () => note).find((check) => check.id === id)
}

function failureOf({ work, subject, size }: Figure, round: number): Failure {
  return { work, subject, size, round, reason: 'out of patience' }
}

describe('medians of rounds', () => {
  test.each([
    [[3, 1, 2], 2],
    [[4, 1, 2, 3], 2.5],
    [[7], 7],
    [[], Number.NaN],
  ])('the median of %j is %d', (values, expected) => {
    expect(median(values)).toBe(expected)
  })

  test('the rounds of one subject at one size become one figure', () => {
    const gathered = new Gathered()
    const place = { work: 'drain', subject: 'Carillon', size: 10 }

    for (const value of [30, 10, 20]) gathered.add(place, [{ metric: 'firstMs', unit: 'ms', value }])
    gathered.add({ ...place, size: 20 }, [{ metric: 'firstMs', unit: 'ms', value: 5, note: 'a note' }])

    const figure = { ...place, metric: 'firstMs', unit: 'ms' }
    expect(gathered.figures).toEqual([
      { ...figure, values: [30, 10, 20], median: 20 },
      { ...figure, size: 20, values: [5], median: 5, note: 'a note' },
    ])
  })
})

describe('impossible values', () => {
  test.each([Number.NaN, Number.POSITIVE_INFINITY, -1.5])(
    'the value %d is refused, and no other value of its round is kept',
    (value) => {
      const gathered = new Gathered()
      const readings = [3, value].map((one, n) => ({ metric: `p${n}`, unit: 'ms', value: one }))

      expect(() => {
        gathered.add({ work: 'lateness', subject: 'Carillon', size: 2 }, readings)
      }).toThrow(`p1 of a finite number from 0 on, got ${value} ms`)
      expect(gathered.figures).toEqual([])
    },
  )

  test('one slot that begins before its instant fails the round, however late the others are (I10)', () => {
    const late = Array.from({ length: 300 }, () => 5)

    expect(() => quantiles([...late, -1.2])).toThrow('expected nothing before its instant, got one 1.2 ms early')
    expect(quantiles([...late, -0.4]).map(({ value }) => value)).toEqual([5, 5, 5])
  })
})

describe('the goals', () => {
  const limit = figure('drain', 'the limit', 60_000, 'slotsPerSecond', 40_000)

  test.each([
    [28_000, true],
    [27_999, false],
  ])('a drain of %d/s beside a limit of 40,000/s reaches its goal: %s', (rate, isReached) => {
    const check = checkOf('drain-limit', [figure('drain', 'Carillon', 60_000, 'slotsPerSecond', rate), limit])

    expect(check).toMatchObject({ figure: 1, wanted: 'at least 0.7', measured: '0.7', isReached })
  })

  test('a ratio compares the medians, not single rounds', () => {
    const own = figure('drain', 'Carillon', 60_000, 'slotsPerSecond', 1, 30_000, 31_000)
    const peer = figure('drain', BULLMQ_ON_REDIS, 60_000, 'slotsPerSecond', 5000, 6000, 90_000)

    expect(checkOf('drain-bullmq', [own, peer])).toMatchObject({ measured: '5 times', isReached: true })
  })

  test('a goal without a measurement is neither reached nor missed', () => {
    expect(checkOf('drain-limit', [limit])).toMatchObject({ measured: 'not measured', isReached: null })
  })

  test('a smaller size shows its value and reaches no goal', () => {
    const own = figure('drain', 'Carillon', 1000, 'slotsPerSecond', 900)
    const small = figure('drain', 'the limit', 1000, 'slotsPerSecond', 1000)

    expect(checkOf('drain-limit', [own, small])).toMatchObject({ measured: '0.9 at 1,000', isReached: null })
  })

  test('only the full plan can reach a goal', () => {
    const figures = [figure('lateness', 'Carillon', 5, 'p50', 1)]
    const check = checkFigures({ figures, failures: [], plan: 'smoke' }, () => 'a note').find(
      ({ id }) => id === 'lateness-p50',
    )

    expect(check).toMatchObject({ measured: '1 ms', isReached: null })
    expect(check).not.toHaveProperty('standsInTheWay')
  })

  test('schedules held are compared with the smallest number held', () => {
    const held = [10, 100].map((size) => figure('scale', 'Carillon', size, 'p50', size === 10 ? 2 : 3))

    expect(checkOf('scale-p50', held)).toMatchObject({ measured: '1.5 times at 100', isReached: null })
  })

  test("a value equal to a peer's does not count as ahead of it", () => {
    const own = figure('create', 'Carillon, library', 4000, 'perSecond', 5000)
    const peer = figure('create', BULLMQ_ON_REDIS, 4000, 'perSecond', 5000)

    expect(checkOf('create-bullmq', [own, peer])).toMatchObject({ measured: '1 times', isReached: false })
  })

  test('a note explains only a goal that is not reached', () => {
    const late = figure('lateness', 'Carillon', 300, 'p50', 3.1)

    expect(checkOf('lateness-p50', [late], { note: 'the disk' })).toMatchObject({
      isReached: false,
      standsInTheWay: 'the disk',
    })
    expect(checkOf('lateness-p50', [{ ...late, median: 3 }], { note: 'the disk' })).not.toHaveProperty('standsInTheWay')
  })

  test.each([
    ['its own', 0],
    ['the compared', 1],
  ])('a goal is neither reached nor missed if a round failed in %s measurement', (_whose, failed) => {
    const pair = [figure('drain', 'Carillon', 60_000, 'slotsPerSecond', 39_000), limit] as const
    const failures = [failureOf(pair[failed === 0 ? 0 : 1], 2)]

    expect(checkOf('drain-limit', pair, { failures, note: 'the disk' })).toEqual({
      figure: 1,
      id: 'drain-limit',
      title: 'Drain of 60,000, as a share of the limit',
      wanted: 'at least 0.7',
      measured: '0.975, a round failed',
      isReached: null,
    })
  })

  test('a failure at another size, of another subject or of another work does not affect a goal', () => {
    const own = figure('drain', 'Carillon', 60_000, 'slotsPerSecond', 39_000)
    const failures = [
      { ...own, size: 1000 },
      { ...own, subject: 'DBOS' },
      { ...own, work: 'herd' },
    ].map((place) => failureOf(place, 1))

    expect(checkOf('drain-limit', [own, limit], { failures })).toMatchObject({ measured: '0.975', isReached: true })
  })

  test('one idle goal is about the worker alone, the other one about the worker and Postgres together', () => {
    const worker = figure('idle', 'Carillon', 1_000_000, 'cpuPercent', 1.2)
    const postgres = figure('idle', 'Carillon', 1_000_000, 'postgresCpuPercent', 0.9)

    expect(checkOf('idle-cpu', [worker, postgres])).toMatchObject({ measured: '1.2 %', isReached: true })
    expect(checkOf('idle-cpu-all', [worker, postgres])).toMatchObject({ measured: '2.1 %', isReached: false })
    expect(checkOf('idle-cpu-all', [worker])).toMatchObject({ measured: 'not measured', isReached: null })
  })

  test('a sum at a smaller size shows that size', () => {
    const idle = ['cpuPercent', 'postgresCpuPercent'].map((metric) => figure('idle', 'Carillon', 100, metric, 0.5))

    expect(checkOf('idle-cpu-all', idle)).toMatchObject({ measured: '1 % at 100', isReached: null })
  })

  test.each([
    ['retries-p50', 'Carillon, retries'],
    ['run-now-p50', 'Carillon, run-now'],
  ])('%s has the goal that a waiting run is called less than 10 ms after it may be taken', (id, subject) => {
    const lateBy = (ms: number): readonly Figure[] => [figure('waiting', subject, 300, 'p50', ms)]

    expect(checkOf(id, lateBy(9.9))).toMatchObject({ figure: 2, wanted: 'under 10 ms', isReached: true })
    expect(checkOf(id, lateBy(10))).toMatchObject({ isReached: false })
  })

  test('the goals belong to six figures', () => {
    expect(
      new Set(checkFigures({ figures: [], failures: [], plan: 'full' }, () => undefined).map((check) => check.figure)),
    ).toEqual(new Set([1, 2, 3, 4, 5, 6]))
  })
})

describe('numbers and tables', () => {
  test.each([
    [41_234.4, '41,234'],
    [41.26, '41.3'],
    [4.126, '4.13'],
    [20, '20'],
    [0, '0'],
  ])('the number %d is written %s', (value, text) => {
    expect(formatNumber(value)).toBe(text)
  })

  test('a median is shown with the range of its rounds, or alone if there was one round', () => {
    expect(formatSpread(figure('drain', 'Carillon', 1, 'p50', 3, 1, 2))).toBe('2 (1–3)')
    expect(formatSpread(figure('drain', 'Carillon', 1, 'p50', 2))).toBe('2')
  })

  test('a vertical bar inside a table cell is escaped', () => {
    expect(markdownTable(['a'], [['x|y']])).toBe(String.raw`| a |
| --- |
| x\|y |`)
  })

  test('several subjects at several sizes get a table for each metric, with the best first and failures named', () => {
    const figures = [
      figure('drain', 'slow', 10, 'slotsPerSecond', 1),
      figure('drain', 'fast', 10, 'slotsPerSecond', 5),
      figure('drain', 'fast', 20, 'slotsPerSecond', 6),
      figure('drain', 'fast', 20, 'firstMs', 3),
    ]
    const failure = { work: 'drain', subject: 'slow', size: 20, round: 1, reason: 'out of patience' }

    expect(figureTables(figures, [failure], { sizeWord: 'slots', rounds: 1 })).toBe(`| slots, /s | 10 slots | 20 slots |
| --- | ---: | ---: |
| fast | 5 | 6 |
| slow | 1 | failed |

| first call after, ms | 10 slots | 20 slots |
| --- | ---: | ---: |
| fast | – | 3 |
| slow | – | failed |`)
  })

  test('several subjects at one size get one table with a column for each metric, with the least late first', () => {
    const figures = [
      ...['p50', 'p99'].map((metric) => figure('lateness', 'late', 9, metric, 8)),
      ...['p50', 'p99'].map((metric) => figure('lateness', 'soon', 9, metric, 2)),
    ]

    expect(figureTables(figures, [], { sizeWord: 'slots', rounds: 1 })).toBe(`|  | p50, ms | p99, ms |
| --- | ---: | ---: |
| soon | 2 | 2 |
| late | 8 | 8 |`)
  })

  test('a subject that failed in a later round is shown with the number of its complete rounds', () => {
    const [short, whole, dear] = [
      figure('create', 'short', 9, 'p50', 2),
      figure('create', 'whole', 9, 'p50', 3, 3, 3),
      figure('create', 'dear', 9, 'p50', 4),
    ]
    // The error beside the third round of `whole` removed no value.
    const failures = [failureOf(short, 2), failureOf(whole, 3)]

    expect(figureTables([short, whole, dear], failures, { sizeWord: 'creates', rounds: 3 })).toBe(`|  | p50, ms |
| --- | ---: |
| short | 2 (1 of 3 rounds) |
| whole | 3 |
| dear | 4 |`)
  })

  test('one subject at several sizes gets a row for each size', () => {
    const figures = [100, 10].map((size) => figure('scale', 'Carillon', size, 'p50', size))

    expect(figureTables(figures, [], { sizeWord: 'schedules held', rounds: 1 })).toBe(`| schedules held | p50, ms |
| --- | ---: |
| 10 | 10 |
| 100 | 100 |`)
  })
})

describe('charts', () => {
  test.each([
    [41_200, 50_000],
    [50_000, 50_000],
    [0.7, 0.8],
    [99, 100],
    [1.01, 1.5],
    [0, 1],
  ])('a scale for %d ends at %d, and has round steps from 0', (largest, end) => {
    const scale = chooseScale(largest)

    expect(scale.end).toBeCloseTo(end, 9)
    expect(scale.ticks[0]).toBe(0)
    expect(scale.ticks.at(-1)).toBeCloseTo(end, 9)
    expect(scale.ticks.length).toBeLessThanOrEqual(6)
  })

  test('a chart shows the limit as a line, highlights Carillon, and shows a peer that gave up with its largest size', () => {
    const [named] = chartsOf('drain', [
      figure('drain', 'DBOS', 10, 'slotsPerSecond', 1),
      figure('drain', 'Carillon', 20, 'slotsPerSecond', 5, 7, 6),
      figure('drain', 'the limit', 20, 'slotsPerSecond', 9),
    ])

    expect(named?.file).toBe('drain-slots-per-second.png')
    expect(named?.chart.marks).toEqual([{ label: 'the limit: 9 /s', value: 9 }])
    expect(named?.chart.bars).toEqual([
      { label: 'Carillon', value: 6, low: 5, high: 7, isOwn: true },
      { label: 'DBOS (10)', value: 1, low: 1, high: 1, isOwn: false },
    ])
  })

  test('names in a chart are escaped', () => {
    const bar = { label: 'a & <b>', value: 1, low: 1, high: 1, isOwn: false }

    expect(drawChart({ title: '', subtitle: '', unit: '', bars: [bar], marks: [] })).toContain('a &amp; &lt;b&gt;')
  })
})

describe('the page of results', () => {
  const results: Results = {
    version: 1,
    plan: 'smoke',
    command: 'npm run bench -- --smoke',
    startedAt: '2026-01-02T03:04:05.000Z',
    seconds: 30,
    isComplete: false,
    machine: { cpu: 'a CPU', cores: 2, memoryGigabytes: 8, os: 'an OS', kernel: 'a kernel' },
    versions: { Postgres: '18.1' },
    durability: { 'Postgres, fsync': 'on' },
    works: [{ name: 'herd', title: 'A herd', sizes: { count: 50 }, rounds: 1, seconds: 3 }],
    subjects: [{ name: 'pg-boss', version: '12.35.0', leaves: 'a job', setUp: 'as its guide says' }],
    figures: [figure('herd', 'Carillon', 50, 'bystanderMs', 12)],
    failures: [{ work: 'herd', subject: 'the whole work', size: 0, round: 0, reason: 'two\nlines' }],
    plans: [],
    checks: checkFigures({ figures: [], failures: [], plan: 'full' }, () => undefined),
  }

  test('states in its first line that a command writes it', () => {
    expect(resultsPage(results).split('\n')[0]).toMatch(/Written by `npm run bench -- --smoke`\. Do not edit/)
  })

  test.each([
    ['that the run reached its time limit', 'came to the end of its time'],
    ['a plan that is too small', 'too small for the figures to reach'],
    ['the machine', 'a CPU, 2 cores'],
    ['a version', '| Postgres | 18.1 |'],
    ['its durability', '| Postgres, fsync | `on` |'],
    ['a failure, on one line', '- the whole work: two lines'],
    ['the set-up of a peer', 'as its guide says'],
    ['the chart', '(charts/herd-bystander-ms.png)'],
  ])('shows %s', (_what, text) => {
    expect(resultsPage(results)).toContain(text)
  })
})

describe('the options of a run', () => {
  const folders = { bench: '/b', cwd: '/here' }

  test('without any option, all works of the full plan run, and write into the folder of the bench', () => {
    expect(parseOptions([], folders)).toMatchObject({ plan: 'full', works: WORK_NAMES, rounds: undefined, out: '/b' })
  })

  test.each([[['--quick']], [['--smoke']], [['--only', 'drain']], [['--rounds', '1']], [['--quick', '--rounds', '5']]])(
    'a run with %j does not replace the published results',
    (args) => {
      expect(folderFor(parseOptions(args, folders), { isComplete: true })).toBe('/b/tmp')
    },
  )

  test.each([[[]], [['--rounds', '3']], [['--rounds', '5']]])(
    'a run with %j replaces the published results if it was complete',
    (args) => {
      const options = parseOptions(args, folders)

      expect(folderFor(options, { isComplete: true })).toBe('/b')
      expect(folderFor(options, { isComplete: false })).toBe('/b/tmp')
    },
  )

  test('--out is used even if the run was incomplete, and --render writes where its results are', () => {
    expect(folderFor(parseOptions(['--out', '/x', '--rounds', '1'], folders), { isComplete: false })).toBe('/x')
    expect(folderFor(parseOptions(['--render'], folders), { isComplete: false })).toBe('/b')
  })

  test('a relative folder is relative to the working directory', () => {
    expect(parseOptions(['--out', 'x/y'], folders).out).toBe('/here/x/y')
  })

  test('the named works run in the order of the plan', () => {
    expect(parseOptions(['--only', 'lateness, drain'], folders).works).toEqual(['drain', 'lateness'])
  })

  test.each([
    [['--only', 'drains'], '"drains"'],
    [['--rounds', '0'], '--rounds from 1 to 100, got "0"'],
    [['--rounds', 'two'], 'got "two"'],
    [['--quick', '--smoke'], 'got both'],
    [['--fast'], '--fast'],
  ])('the options %j are refused with a message that names the fault', (args, message) => {
    expect(() => parseOptions(args, folders)).toThrow(message)
  })
})

test('every plan has a time limit, and gives one round of one subject less than that', () => {
  for (const plan of Object.values(PLANS)) expect(plan.patienceMs).toBeLessThan(plan.limitMs)
  expect(Object.keys(PLANS.full.sizes).toSorted()).toEqual(WORK_NAMES.toSorted())
})
