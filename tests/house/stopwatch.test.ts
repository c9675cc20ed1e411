import { expect, test } from 'vitest'

import { checkBoundaries } from '../../scripts/boundaries/check.ts'
import type { Violation } from '../../scripts/boundaries/violation.ts'
import { createTree } from './fixture-tree.ts'

// Source texts that the rule reads. Nothing here measures time.
const START = 'const start = performance.now(); run();'

/** The rules that a file breaks in a fixture repository of one package, except for arrows, of which so small a tree uses none. */
function violationsOf(root: string): Violation[] {
  return checkBoundaries(root).filter(({ rule }) => rule !== 'unused-arrow')
}

/** These rules, with their lines. */
async function violationsIn(path: string, source: string): Promise<string[]> {
  await using tree = await createTree({
    'package.json': '{ "name": "carillon" }',
    'packages/cadence/package.json': '{ "name": "@carillon/cadence" }',
    [path]: source,
  })
  return violationsOf(tree.root).map(({ rule, line }) => `${rule} ${line}`)
}

test.each([
  'expect(performance.now() - start).toBeLessThan(50)',
  'expect(globalThis.performance.now() - start).toBeLessThan(50)',
  `expect(performance['now']() - start).not.toBeGreaterThan(50)`,
  'expect(Date.now() - startedAt).toBeLessThanOrEqual(LIMIT_MS)',
  'expect(Date.now() - rows[0].created_at.getTime()).toBeLessThan(5000)',
  'expect(new Date() - start).toBeCloseTo(100)',
  'expect(new Date().getTime() - start).toBeGreaterThan(100)',
  'expect(process.hrtime.bigint() - start).toBeLessThan(50n)',
  'expect(process.hrtime(start)[1]).toBeLessThan(50)',
  'expect(Temporal.Now.instant().epochMilliseconds - start).toBeLessThan(50)',
  `expect(performance.now() - start, 'how long').toBeLessThan(50)`,
  'expect(performance.now() - start < 50).toBe(true)',
  'expect(50 >= (performance.now() - start) / runs).toBe(true)',
  `if (performance.now() - start > 50) throw new Error('slow')`,
  'while (Date.now() - start < 1000) await look()',
])('a test that compares what it measured is refused: %s', async (comparison) => {
  expect(await violationsIn('tests/a.test.ts', `${START}\n${comparison}`)).toEqual(['stopwatch 2'])
})

test.each([
  'const took = performance.now() - start; expect(took).toBeLessThan(50)',
  'const took = performance.now() - start; const seconds = Math.round(took / 1000); expect(seconds).toBeLessThan(5)',
  'let best = Infinity; best = Math.min(best, performance.now() - start); expect(best).toBeLessThanOrEqual(LIMIT)',
  'let total = 0; total += performance.now() - start; expect(total).toBeLessThan(50)',
  'const times = []; times.push(performance.now() - start); expect(Math.max(...times)).toBeLessThan(50)',
  'const result = { took: performance.now() - start }; expect(result.took).toBeLessThan(50)',
  'const [seconds, rest] = process.hrtime(start); expect(seconds).toBeLessThan(1)',
  'const end = performance.now(); expect(end - start).toBeLessThan(50)',
  'const end = performance.now(); expect(end).toBeLessThan(start + 50)',
  'const deadline = Date.now() + 5000; while (Date.now() < deadline) await look()',
  'const now = () => performance.now(); expect(now() - before).toBeLessThan(50)',
  'const elapsed = () => performance.now() - start; expect(elapsed()).toBeLessThan(50)',
  'expect(await timed(run)).toBeLessThan(50); async function timed(f) { await f(); return performance.now() - start }',
])('a measured time is recognised by its name: %s', async (source) => {
  expect(await violationsIn('packages/cadence/src/a.test.ts', `${START}\n${source}`)).toEqual(['stopwatch 2'])
})

test.each([
  'create({ at: new Date(Date.now() + 1500).toISOString() })',
  'const at = new Date(Date.now() - 3000).toISOString(); expect(at).toBe(schedule.nextSlotAt)',
  'const run = await begin(Date.now() - 3000); expect(run.attempts.length).toBeGreaterThan(0)',
  'const before = Date.now(); const { createdAt } = await create(); expect(createdAt).toBeGreaterThanOrEqual(before)',
  'expect(Date.parse(run.startedAt)).toBeLessThanOrEqual(Date.now())',
  'expect(clock.instant - SLOT).toBeLessThan(50)',
  'expect(run.latenessMs).toBeGreaterThanOrEqual(0)',
  'const times = []; times.push(performance.now() - start); expect(times.length).toBeGreaterThan(3)',
  'console.log(`took ${performance.now() - start} ms`)',
  'expect(performance.now() - start).toEqual(expect.any(Number))',
])('code that does not compare a measured time is allowed: %s', async (source) => {
  expect(await violationsIn('packages/cadence/tests/a.test.ts', `${START}\n${source}`)).toEqual([])
})

test('the rule covers the shared files of tests, but not benches and scripts', async () => {
  const source = `${START} expect(performance.now() - start).toBeLessThan(50)`

  expect(await violationsIn('tests/rig.ts', source)).toEqual(['stopwatch 1'])
  expect(await violationsIn('packages/cadence/tests/rig.ts', source)).toEqual(['stopwatch 1'])
  expect(await violationsIn('packages/cadence/bench/bench.ts', source)).toEqual([])
  expect(await violationsIn('bench/works/drain.ts', source)).toEqual([])
  expect(await violationsIn('scripts/check.ts', source)).toEqual([])
})

test('the refusal states a remedy', async () => {
  await using tree = await createTree({
    'package.json': '{ "name": "carillon" }',
    'tests/a.test.ts': `${START} expect(performance.now() - start).toBeLessThan(50)`,
  })

  expect(violationsOf(tree.root).map(({ message }) => message)).toEqual([
    'a measured time is compared: count steps, rows or round trips, or move the measurement to bench/',
  ])
})
