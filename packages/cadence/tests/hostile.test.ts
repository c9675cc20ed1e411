import fc from 'fast-check'
import { afterAll, describe, expect, test, vi } from 'vitest'

import { PROBLEM_CODES, parse } from '../src/index.ts'
import { SEARCH_STEPS } from '../src/rules/step-budget.ts'
import { Zone } from '../src/time/zone.ts'
import { anything, mutatedInput, stringInput, validInput } from './arbitrary/hostile-input.ts'
import { problemsOf, type Cadence, type Problem } from './cadence-of.ts'
import { PROPERTY_TIMEOUT, RUNS } from './runs.ts'
import { HOSTILE } from './vectors/hostile.ts'

const NOW = Date.UTC(2027, 0, 15, 10, 20, 30)
/** A call of `slots` has the budget of four searches. */
const SLOTS_STEPS = 4 * SEARCH_STEPS
/** A call of `warnings` has one budget for each segment of the zone. Two years have fewer than ten, including the ends of zone years. */
const WARNINGS_STEPS = 10 * SEARCH_STEPS
/** The most expensive step is a month with BYWEEKNO: it is charged 10 steps and takes about 70 units. */
const UNITS_PER_STEP = 12
/** One offset read from `Intl` takes as long as 20 calculations of the calendar. */
const UNITS_PER_OFFSET = 20

/**
 * Counts the work of the library, whatever it charges to its budget. So a loop that charges nothing is counted too. One unit is one
 * calendar calculation. The count does not depend on the load of the machine.
 */
const work = vi.hoisted(() => {
  // A test file that ran earlier in this process may have loaded the modules without the counters.
  vi.resetModules()
  return {
    unitsLeft: Infinity,
    do(units: number): void {
      this.unitsLeft -= units
      // Throws inside the call, because a search without a budget may never end.
      if (this.unitsLeft < 0) throw new Error('expected a bounded search, got more work than its steps allow')
    },
  }
})

function counting<Args extends unknown[], Result>(calculate: (...args: Args) => Result): (...args: Args) => Result {
  return (...args) => {
    work.do(1)
    return calculate(...args)
  }
}

vi.mock(import('../src/time/wall-time.ts'), async (importOriginal) => {
  const wall = await importOriginal()
  return {
    ...wall,
    dateOf: counting(wall.dateOf),
    dayNumberOf: counting(wall.dayNumberOf),
    dayOf: counting(wall.dayOf),
    daysInMonth: counting(wall.daysInMonth),
    daysInYear: counting(wall.daysInYear),
    modulo: counting(wall.modulo),
    weekdayOf: counting(wall.weekdayOf),
  }
})

const format = Object.getOwnPropertyDescriptor(Intl.DateTimeFormat.prototype, 'format')
Object.defineProperty(Intl.DateTimeFormat.prototype, 'format', {
  ...format,
  get(): unknown {
    work.do(UNITS_PER_OFFSET)
    return format?.get?.call(this)
  },
})
afterAll(() => {
  vi.doUnmock('../src/time/wall-time.ts')
  vi.resetModules()
  if (format !== undefined) Object.defineProperty(Intl.DateTimeFormat.prototype, 'format', format)
})

/** Returns the result of the call. Throws if the call does more work than `steps` search steps allow. */
function within<Answer>(steps: number, call: () => Answer): Answer {
  work.unitsLeft = steps * UNITS_PER_STEP
  try {
    return call()
  } finally {
    work.unitsLeft = Infinity
  }
}

test('the counters of this test see calendar calculations and offsets read from Intl', () => {
  const zone = new Zone('Europe/Rome')

  expect(() => within(0, () => parse({ kind: 'cron', expression: '0 9 * * *' }))).toThrow('expected a bounded search')
  expect(() => within(100, () => zone.offsetAt(NOW))).toThrow('expected a bounded search')
})

describe('invalid input', () => {
  test.each(HOSTILE)('$title is rejected with $code in $field', ({ input, code, field }) => {
    const problems = within(SEARCH_STEPS, () => problemsOf(input))

    for (const problem of problems) checkProblem(problem, input)
    expect(problems.map((problem) => ({ code: problem.code, field: problem.field }))).toContainEqual({ code, field })
  })

  test('all independent problems are reported at once', () => {
    const problems = problemsOf({
      kind: 'cron',
      expression: '60 24 * * *',
      timezone: 'Mars/Olympus',
      maxRuns: 0,
      startAt: 'x',
      colour: 'blue',
    })

    expect(problems.map(({ code, field, position }) => `${field}@${position ?? ''} ${code}`).toSorted()).toEqual([
      'colour@ unknown_field',
      'expression@0 out_of_range',
      'expression@3 out_of_range',
      'maxRuns@ out_of_range',
      'startAt@ syntax',
      'timezone@ unknown_timezone',
    ])
  })

  test('a message quotes the value, shortened and without control characters', () => {
    const [problem] = problemsOf({ kind: 'cron', expression: `0 9 * * \u001b[31m\u202e${'x'.repeat(500)}` })

    expect(problem?.message).not.toMatch(/[\p{Cc}\p{Cf}]/u)
    expect(problem?.message.length).toBeLessThan(400)
  })

  test('a message shows a line break as JSON does, and escapes what JSON leaves as it is', () => {
    const [problem] = problemsOf({ kind: 'cron', expression: '0 9 * * *', timezone: 'a\n"\u202e\ud800' })

    expect(problem?.found).toBe(String.raw`"a\n\"\u{202e}\ud800"`)
  })

  test('parsing does not change Object.prototype', () => {
    parse(
      JSON.parse(
        '{"kind":"cron","expression":"0 9 * * *","__proto__":{"polluted":true},"dst":{"__proto__":{"polluted":true}}}',
      ),
    )

    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined()
  })

  test('a getter that throws is a problem, not a crash', () => {
    const input = {
      kind: 'cron',
      get expression(): string {
        throw new Error('no')
      },
    }

    expect(parse(input).ok).toBe(false)
  })
})

describe('zones', () => {
  test.each([
    ['asia/calcutta', 'Asia/Kolkata'],
    ['Asia/Katmandu', 'Asia/Kathmandu'],
    ['US/Eastern', 'America/New_York'],
    ['america/new_york', 'America/New_York'],
    ['Europe/Kiev', 'Europe/Kyiv'],
    ['Asia/Saigon', 'Asia/Ho_Chi_Minh'],
    ['America/Buenos_Aires', 'America/Argentina/Buenos_Aires'],
    ['utc', 'UTC'],
    ['Etc/UTC', 'UTC'],
    ['Etc/Zulu', 'UTC'],
    ['Zulu', 'UTC'],
    ['GMT', 'UTC'],
    ['Etc/GMT', 'UTC'],
    ['UCT', 'UTC'],
    ['Universal', 'UTC'],
    ['Antarctica/Troll', 'Antarctica/Troll'],
    ['EST', 'America/Panama'],
  ])('%s is %s', (given, canonical) => {
    const parsed = parse({ kind: 'cron', expression: '0 9 * * *', timezone: given })

    expect(parsed.ok && parsed.cadence.timezone).toBe(canonical)
    expect(parsed.ok && parsed.cadence.spec.timezone).toBe(canonical)
  })

  test('the default zone is UTC', () => {
    const parsed = parse({ kind: 'cron', expression: '0 9 * * *' })

    expect(parsed.ok && parsed.cadence.timezone).toBe('UTC')
  })
})

describe('any input', { timeout: 2 * PROPERTY_TIMEOUT }, () => {
  test.each([
    { what: 'any value', input: anything() },
    { what: 'any JSON', input: fc.jsonValue() as fc.Arbitrary<unknown> },
    { what: 'valid input', input: validInput() as fc.Arbitrary<unknown> },
    { what: 'valid input, changed', input: mutatedInput() as fc.Arbitrary<unknown> },
    { what: 'any text where text belongs', input: stringInput() as fc.Arbitrary<unknown> },
  ])('$what gives a working cadence or a list of problems within a fixed number of steps', ({ input }) => {
    fc.assert(fc.property(input, checkAnswer), { numRuns: RUNS })
  })
})

function checkAnswer(input: unknown): void {
  const parsed = within(SEARCH_STEPS, () => parse(input, { now: NOW }))
  if (parsed.ok) {
    checkCadence(parsed.cadence)
  } else {
    expect(parsed.problems.length).toBeGreaterThan(0)
    for (const problem of parsed.problems) checkProblem(problem, input)
  }
}

function checkCadence(cadence: Cadence): void {
  const next = within(SEARCH_STEPS, () => cadence.next(NOW))
  const previous = within(SEARCH_STEPS, () => cadence.previous(NOW))
  const slots = within(SLOTS_STEPS, () => cadence.slots(NOW))
  const description = within(SEARCH_STEPS, () => cadence.describe())
  const warnings = within(WARNINGS_STEPS, () => cadence.warnings(NOW))
  const isExhausted = within(SEARCH_STEPS, () => cadence.isExhausted(NOW))

  if (next !== null) expect(next).toBeGreaterThan(NOW)
  if (previous !== null) expect(previous).toBeLessThan(NOW)
  expect(isExhausted).toBe(next === null)
  expect(slots.find((slot) => slot > NOW) ?? null).toBe(next)
  expect(description).not.toBe('')
  for (const { message } of warnings) expect(message).not.toBe('')
  if (next !== null) expect(within(SEARCH_STEPS, () => cadence.local(next))).toContain(`[${cadence.timezone}]`)
}

function checkProblem({ code, field, expected, found, message, position }: Problem, input: unknown): void {
  expect(PROBLEM_CODES).toContain(code)
  expect(typeof field).toBe('string')
  expect(expected).not.toBe('')
  expect(found).not.toBe('')
  expect(message).toBe(`expected ${expected}, got ${found}${position === undefined ? '' : ` at position ${position}`}`)
  if (position === undefined) return
  const text = (input as Readonly<Record<string, unknown>>)[field]
  expect(text).toBeTypeOf('string')
  expect(position).toBeGreaterThanOrEqual(0)
  expect(position).toBeLessThanOrEqual(String(text).length)
}
