import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { openTree } from '../../bench/compare/base-tree.ts'
import { comparisonText } from '../../bench/compare/comparison-text.ts'
import { pairFigures, type Comparison, type Pair } from '../../bench/compare/comparison.ts'
import { COMPARE_SIZES, parseCompareOptions } from '../../bench/compare/options.ts'
import { Rounds } from '../../bench/compare/rounds.ts'
import type { SideAnswer, SideName, SideOrder } from '../../bench/compare/side-message.ts'
import { Progress } from '../../bench/progress.ts'
import { median, type Failure, type Figure } from '../../bench/results.ts'
import { REPOSITORY, runTool } from './run-tool.ts'

function figure(metric: string, ...values: number[]): Figure {
  return { work: 'drain', subject: 'Carillon', size: 10, metric, unit: '', values, median: median(values) }
}

function pairOf(metric: string, base: readonly number[], current: readonly number[]): Pair {
  const [pair] = pairFigures([figure(metric, ...base)], [figure(metric, ...current)])
  if (pair === undefined) throw new Error('expected a pair, got none')
  return pair
}

describe('the verdict of a comparison', () => {
  test.each([
    ['ranges that overlap', [100, 110, 120], [60, 90, 101], { areRangesOverlapping: true, verdict: 'equal' }],
    ['ranges that touch', [100, 110], [120, 110], { areRangesOverlapping: true, verdict: 'equal' }],
    [
      'medians 5 % apart',
      [100, 100],
      [105, 105],
      { areMediansClose: true, areRangesOverlapping: false, verdict: 'equal' },
    ],
    ['a lower rate', [100, 101], [90, 94], { areMediansClose: false, verdict: 'worse' }],
    ['a higher rate', [100, 101], [110, 112], { areMediansClose: false, verdict: 'better' }],
  ])('is right for %s', (_what, base, current, expected) => {
    expect(pairOf('slotsPerSecond', base, current)).toMatchObject(expected)
  })

  test('prefers the lower value for metrics where less is better', () => {
    expect(pairOf('p50', [2, 2.1], [3, 3.1])).toMatchObject({ verdict: 'worse' })
    expect(pairOf('p50', [3, 3.1], [2, 2.1])).toMatchObject({ verdict: 'better' })
  })

  test("shows the ratio of this tree's median to the base's median, and no ratio if the base's is 0", () => {
    expect(pairOf('slotsPerSecond', [1, 100, 101], [50, 50, 900])).toMatchObject({ ratio: 0.5 })
    expect(pairOf('cpuPercent', [0], [1])).toMatchObject({ ratio: null, verdict: 'worse' })
  })

  test('counts only rounds and figures that both sides have', () => {
    expect(pairOf('p50', [1, 2, 9], [1, 2]).base.values).toEqual([1, 2])
    expect(pairFigures([figure('p50', 1)], [figure('p99', 1)])).toEqual([])
  })
})

describe('the rounds of a comparison', () => {
  const NO_FAILURES: readonly Failure[] = []

  function setUp(answerOf: (side: SideName, order: SideOrder) => Partial<SideAnswer>) {
    const orders: string[] = []
    const side = (name: SideName) => ({
      name,
      measure: (order: SideOrder): Promise<SideAnswer> => {
        orders.push(`${name} ${order.work}${order.isWarmUp ? ' warm-up' : ''}`)
        return Promise.resolve({ figures: [], failures: NO_FAILURES, isMissing: false, ...answerOf(name, order) })
      },
    })
    const progress = new Progress(() => undefined)
    const { signal } = new AbortController()
    const rounds = new Rounds({ sides: [side('base'), side('current')], progress, signal })
    return { rounds, orders }
  }

  test('both sides take turns work by work, and each round begins with the other side', async () => {
    const { rounds, orders } = setUp(() => ({}))

    await rounds.measure({ works: ['drain', 'lateness'], rounds: 2, isSmoke: false })

    expect(orders.join(', ')).toBe(
      'current drain warm-up, base drain warm-up, current lateness warm-up, base lateness warm-up, ' +
        'base drain, current drain, base lateness, current lateness, ' +
        'current drain, base drain, current lateness, base lateness',
    )
  })

  test('the results of the warm-up are not kept', async () => {
    const { rounds } = setUp((_side, { isWarmUp }) => ({
      figures: isWarmUp ? [figure('p50', 99)] : [figure('p50', 1)],
    }))

    await rounds.measure({ works: ['drain'], rounds: 1, isSmoke: false })

    expect(rounds.figuresOf('base')).toEqual([figure('p50', 1)])
  })

  test('a work that fails on one side is not measured on either side any more, and the other works continue', async () => {
    const failure: Failure = { work: 'drain', subject: 'Carillon', size: 10, round: 1, reason: 'no luck' }
    const { rounds, orders } = setUp((side, { work, isWarmUp }) =>
      side === 'base' && work === 'drain' && !isWarmUp ? { failures: [failure] } : {},
    )

    await rounds.measure({ works: ['drain', 'lateness'], rounds: 2, isSmoke: false })

    expect(orders.filter((order) => order.endsWith('drain'))).toEqual(['base drain'])
    expect(orders.filter((order) => order.endsWith('lateness'))).toHaveLength(4)
    expect(rounds.failures).toEqual([{ ...failure, side: 'base' }])
  })

  test('a work that one side does not have is named and not compared', async () => {
    const { rounds, orders } = setUp((side) => ({ isMissing: side === 'base' }))

    await rounds.measure({ works: ['waiting'], rounds: 3, isSmoke: false })

    expect(orders).toEqual(['current waiting warm-up', 'base waiting warm-up'])
    expect(rounds.notes).toEqual(['base has no work "waiting": it is not compared'])
  })
})

test('the text shows medians, ranges, the ratio, the verdict and the failures', () => {
  const comparison: Comparison = {
    base: 'the old one',
    current: 'the new one',
    startedAt: '2026-01-02T03:04:05.000Z',
    seconds: 30,
    rounds: 3,
    isComplete: false,
    isSmoke: false,
    machine: { cpu: 'a CPU', cores: 2, memoryGigabytes: 8, os: 'an OS', kernel: 'a kernel' },
    postgres: {},
    pairs: [pairOf('slotsPerSecond', [100, 101], [90, 94])],
    failures: [{ side: 'current', work: 'idle', subject: 'Carillon', size: 1, round: 2, reason: 'no luck' }],
    notes: ['a note'],
  }

  const lines = comparisonText(comparison).split('\n')

  expect(lines).toEqual(
    expect.arrayContaining([
      'base: the old one',
      'this: the new one',
      'its time was up before the last round',
      'a note',
    ]),
  )
  expect(lines.find((line) => line.startsWith('drain 10'))?.split(/\s{2,}/)).toEqual([
    'drain 10',
    'slots',
    '101 (100–101)',
    '92 (90–94)',
    '0.915',
    'apart',
    'apart',
    'worse (2 of 3 rounds)',
  ])
  expect(lines).toContain('not measured: this, idle, Carillon: no luck')
})

describe('the options of a comparison', () => {
  test('default to a drain of 60,000, sparse lateness and five rounds', () => {
    expect(parseCompareOptions(['--base', 'HEAD'])).toMatchObject({ works: ['drain', 'lateness'], rounds: 5 })
    expect(COMPARE_SIZES.drain.counts).toEqual([60_000])
  })

  test.each([
    [[], 'expected --base'],
    [['--base', 'HEAD', '--only', 'scale'], '"scale"'],
    [['--base', 'HEAD', '--rounds', '0'], '--rounds from 1 to 100, got "0"'],
    [['--base', 'HEAD', '--fast'], '--fast'],
  ])('such as %j are refused with a message that names the fault', (args, message) => {
    expect(() => parseCompareOptions(args)).toThrow(message)
  })
})

describe('the base of a comparison', () => {
  const repository = mkdtempSync(join(tmpdir(), 'carillon-compare-test-'))
  const { signal } = new AbortController()
  const options = { cwd: repository, repository, signal, note: () => undefined }
  const git = (...args: string[]): void => {
    const identity = ['-c', 'user.name=bench', '-c', 'user.email=bench@example.com']
    execFileSync('git', [...identity, ...args], { cwd: repository })
  }
  const manifest = { name: 'fixture', version: '1.2.3', lockfileVersion: 3, packages: {} }

  beforeAll(() => {
    git('init', '--quiet')
    for (const file of ['package.json', 'package-lock.json']) {
      writeFileSync(join(repository, file), JSON.stringify(manifest))
    }
    git('add', '.')
    git('commit', '--quiet', '--message', 'first')
    git('tag', 'first')
    rmSync(join(repository, 'package.json'))
  })
  afterAll(() => {
    rmSync(repository, { recursive: true, force: true })
  })

  test('a commit is checked out in a temporary folder with its dependencies, and removed afterwards', async () => {
    const tree = await openTree('first', options)

    expect(tree.folder.startsWith(repository)).toBe(false)
    expect(tree.name).toMatch(/^1\.2\.3, commit [0-9a-f]{7}$/)
    expect(readdirSync(tree.folder)).toContain('package.json')

    await tree[Symbol.asyncDispose]()
    expect(existsSync(tree.folder)).toBe(false)
    // The repository is unchanged: its deleted file is still deleted, and git knows no other worktree.
    expect(existsSync(join(repository, 'package.json'))).toBe(false)
    expect(existsSync(join(repository, '.git/worktrees'))).toBe(false)
  }, 120_000)

  test.each(['nothing', '--output=x', 'first:package.json'])(
    '%s is refused with a message that names the fault',
    async (base) => {
      await expect(openTree(base, options)).rejects.toThrow(`got "${base}"`)
    },
  )
})

/** This limit only ends a run that hangs. Alone on two cores the run takes half a minute. */
const SMOKE_MS = 10 * 60_000

test(
  'a smoke run compares a tree with itself, and removes its temporary files',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'carillon-compare-test-'))
    // If root runs the tests, Postgres runs as another user, which must be able to reach its data.
    chmodSync(folder, 0o711)
    try {
      const command = `TMPDIR=${folder} npm run --silent bench:compare -- --base . --smoke --rounds 2 --json > ${folder}.json`
      const { exitCode, stderr } = await runTool(REPOSITORY, 'sh', ['-c', command])

      expect(exitCode, stderr).toBe(0)
      const { pairs, failures, isComplete } = JSON.parse(readFileSync(`${folder}.json`, 'utf8')) as Comparison
      expect({ failures, isComplete }).toEqual({ failures: [], isComplete: true })
      expect(pairs.map(({ work, metric }) => `${work} ${metric}`)).toEqual([
        'drain slotsPerSecond',
        'drain firstMs',
        'lateness p50',
        'lateness p99',
        'lateness max',
      ])
      expect(pairs.flatMap(({ base, current }) => [base.values.length, current.values.length])).toEqual(
        Array.from({ length: 10 }, () => 2),
      )
      // npm keeps a cache of its own in this folder.
      expect(readdirSync(folder).filter((name) => name.startsWith('carillon'))).toEqual([])
    } finally {
      rmSync(folder, { recursive: true, force: true })
      rmSync(`${folder}.json`, { force: true })
    }
  },
  SMOKE_MS,
)
