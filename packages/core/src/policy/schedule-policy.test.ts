import fc from 'fast-check'
import { describe, expect, test } from 'vitest'

import {
  AUTO_PAUSE_REASON,
  isUsedUp,
  readPolicy,
  resolvePolicy,
  shouldAutoPause,
  type PolicyDefaults,
  type SchedulePolicy,
} from './schedule-policy.ts'

const DEFAULTS: PolicyDefaults = {
  cadenceKind: 'cron',
  policy: { retry: { maxAttempts: 10, baseSeconds: 30, capSeconds: 2160 } },
}

const RESOLVED: SchedulePolicy = {
  overlap: 'forbid',
  missed: 'skip',
  startingDeadlineSeconds: 300,
  retry: { maxAttempts: 10, baseSeconds: 30, capSeconds: 2160 },
  autoPauseThreshold: 10,
  spreadSeconds: 0,
}

function policyOf(input: unknown, defaults: Partial<PolicyDefaults> = {}): SchedulePolicy {
  const result = resolvePolicy(input, { ...DEFAULTS, ...defaults })
  if (!result.ok) throw new Error(JSON.stringify(result.problems))
  return result.policy
}

/** The problems of an input as `path: message`. */
function problemsOf(input: unknown): string[] {
  const result = resolvePolicy(input, DEFAULTS)
  return result.ok ? [] : result.problems.map(({ path, message }) => `${path}: ${message}`)
}

describe('a run limit', () => {
  test.each([
    [{}, {}],
    [{ runLimit: null }, {}],
    [{ runLimit: 1 }, { runLimit: 1 }],
    [{ runLimit: 1_000_000_000 }, { runLimit: 1_000_000_000 }],
  ])('of %j is stored as %j', (input, stored) => {
    expect(policyOf(input)).toEqual({ ...RESOLVED, ...stored })
    expect(readPolicy(policyOf(input))).toEqual({ ...RESOLVED, ...stored })
  })

  test.each([0, -1, 1.5, 1_000_000_001, '3', true])('of %j is refused with what was expected', (runLimit) => {
    expect(problemsOf({ runLimit })).toEqual([
      expect.stringMatching(/^policy\.runLimit: expected a whole number from 1 to 1000000000, or null for none, got /),
    ])
  })

  test('cannot be a default of a kind, because a caller could not remove it', () => {
    const policy = { ...DEFAULTS.policy, runLimit: 3 }

    expect(policyOf({}, { policy })).not.toHaveProperty('runLimit')
  })

  test.each([
    [undefined, 1_000_000, false],
    [3, 2, false],
    [3, 3, true],
    [3, 4, true],
  ])('of %j is used up after %i runs: %j', (runLimit, runCount, isUp) => {
    expect(isUsedUp(runLimit === undefined ? {} : { runLimit }, runCount)).toBe(isUp)
  })
})

describe('defaults', () => {
  test.each([[undefined], [{}], [{ overlap: undefined, retry: { maxAttempts: undefined } }]])(
    'fill in the fields that %j leaves out',
    (input) => {
      expect(policyOf(input)).toEqual(RESOLVED)
    },
  )

  test.each([
    ['once', 'run_once'],
    ['cron', 'skip'],
    ['rrule', 'skip'],
    ['interval', 'skip'],
    ['frequency', 'skip'],
  ] as const)('of missed depend on the kind of the cadence: %s has %s', (cadenceKind, missed) => {
    expect(policyOf({}, { cadenceKind }).missed).toBe(missed)
  })

  test('do not override given values, 0 included', () => {
    const input: SchedulePolicy = {
      overlap: 'replace',
      missed: 'run_once',
      startingDeadlineSeconds: 1,
      retry: { maxAttempts: 1, baseSeconds: 2, capSeconds: 3 },
      autoPauseThreshold: 0,
      spreadSeconds: 3600,
    }

    expect(policyOf(input)).toEqual(input)
    expect(policyOf({ missed: 'skip' }, { cadenceKind: 'once' }).missed).toBe('skip')
  })

  test("of retry are the target's, field by field", () => {
    const retry = { maxAttempts: 3, baseSeconds: 60, capSeconds: 1500 }

    expect(policyOf({}, { policy: { retry } }).retry).toEqual(retry)
    expect(policyOf({ retry: {} }, { policy: { retry } }).retry).toEqual(retry)
    expect(policyOf({ retry: { maxAttempts: 5 } }, { policy: { retry } }).retry).toEqual({ ...retry, maxAttempts: 5 })
    expect(policyOf({ retry: { baseSeconds: 1500 } }, { policy: { retry } }).retry).toEqual({
      ...retry,
      baseSeconds: 1500,
    })
    expect(policyOf({ retry: { capSeconds: 60 } }, { policy: { retry } }).retry).toEqual({ ...retry, capSeconds: 60 })
  })

  test.each([
    { maxAttempts: 0, baseSeconds: 30, capSeconds: 60 },
    { maxAttempts: 1, baseSeconds: 0, capSeconds: 0 },
    { maxAttempts: 1, baseSeconds: 61, capSeconds: 60 },
  ])('of retry that a stored policy could not have are rejected as a fault of the target: %j', (retry) => {
    expect(() => resolvePolicy({}, { ...DEFAULTS, policy: { retry } })).toThrow(
      "a target's policy cannot be a default: policy.retry",
    )
  })
})

describe('limits', () => {
  test.each([
    ['startingDeadlineSeconds', 1, 604_800],
    ['spreadSeconds', 0, 3600],
    ['autoPauseThreshold', 3, 100],
  ])('%s lies between %i and %i', (field, min, max) => {
    expect(policyOf({ [field]: min })).toMatchObject({ [field]: min })
    expect(policyOf({ [field]: max })).toMatchObject({ [field]: max })
    for (const value of [min - 1, max + 1, min + 0.5]) expect(problemsOf({ [field]: value })).toHaveLength(1)
  })

  test.each([
    ['maxAttempts', 1, 100],
    ['baseSeconds', 1, 86_400],
    ['capSeconds', 1, 86_400],
  ])('retry.%s lies between %i and %i', (field, min, max) => {
    const around = { maxAttempts: 1, baseSeconds: field === 'capSeconds' ? 1 : min, capSeconds: 86_400 }

    expect(policyOf({ retry: { ...around, [field]: min } }).retry).toMatchObject({ [field]: min })
    expect(policyOf({ retry: { ...around, [field]: max } }).retry).toMatchObject({ [field]: max })
    for (const value of [min - 1, max + 1, min + 0.5]) {
      expect(problemsOf({ retry: { ...around, [field]: value } })).toEqual([
        `policy.retry.${field}: expected a whole number from ${min} to ${max}, got ${value}`,
      ])
    }
  })
})

test('an auto-pause threshold is 0, or from 3 to 100', () => {
  const candidates = [-3, -1, 0, 1, 2, 3, 3.5, 4, 99, 100, 101, Infinity, Number.NaN]
  const isThreshold = (autoPauseThreshold: number) => problemsOf({ autoPauseThreshold }).length === 0

  expect(candidates.filter(isThreshold)).toEqual([0, 3, 4, 99, 100])
})

describe('problems', () => {
  test.each([
    [null, 'policy: expected an object, got null'],
    [[], 'policy: expected an object, got a list'],
    ['forbid', 'policy: expected an object, got "forbid"'],
    [{ overlap: 'Forbid' }, 'policy.overlap: expected one of forbid, queue, allow, replace, got "Forbid"'],
    [{ overlap: null }, 'policy.overlap: expected one of forbid, queue, allow, replace, got null'],
    [{ missed: 'fire_once' }, 'policy.missed: expected one of skip, run_once, got "fire_once"'],
    [{ retry: 3 }, 'policy.retry: expected an object, got 3'],
    [{ retry: { maxAttempts: '3' } }, 'policy.retry.maxAttempts: expected a whole number from 1 to 100, got "3"'],
    // One problem, although the value exceeds both the safe integers and the range of the field.
    [{ retry: { maxAttempts: 1e300 } }, 'policy.retry.maxAttempts: expected a whole number from 1 to 100, got 1e+300'],
    [{ spreadSeconds: Number.NaN }, 'policy.spreadSeconds: expected a whole number from 0 to 3600, got NaN'],
    [{ autoPauseThreshold: 2 }, 'policy.autoPauseThreshold: expected 0 (never) or a whole number from 3 to 100, got 2'],
    [
      { autoPauseThreshold: true },
      'policy.autoPauseThreshold: expected 0 (never) or a whole number from 3 to 100, got true',
    ],
    [
      { concurrencyPolicy: 'Allow' },
      'policy.concurrencyPolicy: expected no such field, got "concurrencyPolicy": leave it out, or correct its name',
    ],
    [
      { retry: { attempts: 3 } },
      'policy.retry.attempts: expected no such field, got "attempts": leave it out, or correct its name',
    ],
    [
      JSON.parse('{"__proto__": {"overlap": "allow"}}'),
      'policy.__proto__: expected no such field, got "__proto__": leave it out, or correct its name',
    ],
    [{ retry: { capSeconds: 29 } }, 'policy.retry.capSeconds: expected at least baseSeconds, which is 30, got 29'],
    [
      { retry: { baseSeconds: 60, capSeconds: 59 } },
      'policy.retry.capSeconds: expected at least baseSeconds, which is 60, got 59',
    ],
    [
      { retry: { baseSeconds: 2161 } },
      'policy.retry.baseSeconds: expected at most 2160, the default of capSeconds, got 2161: raise capSeconds too',
    ],
  ])('%j', (input: unknown, problem) => {
    expect(problemsOf(input)).toEqual([problem])
  })

  test('are all reported at once', () => {
    const input = { overlap: 'no', missed: 1, retry: { maxAttempts: 0, x: 1 }, y: 2, z: 3 }

    expect(problemsOf(input).map((problem) => problem.split(':')[0])).toEqual([
      'policy.overlap',
      'policy.missed',
      'policy.retry.maxAttempts',
      'policy.retry.x',
      'policy.y',
      'policy.z',
    ])
  })

  test('show the given value shortened and escaped', () => {
    const [problem] = problemsOf({ overlap: `a\n\u202E\u2028${'b'.repeat(1000)}` })

    expect(problem?.split(', got ')[1]).toBe(String.raw`"a\n\u{202e}\u{2028}${'b'.repeat(56)}…"`)
    expect(problemsOf({ ['\u001B[2J"'.padEnd(1000, 'c')]: 1 })[0]).toMatch(/^policy\.\\u001b\[2J\\"c{195}…: /)
  })

  test('are found in any value without throwing', () => {
    fc.assert(
      fc.property(fc.anything(), (input) => {
        const result = resolvePolicy(input, DEFAULTS)

        if (result.ok) expect(readPolicy(result.policy)).toEqual(result.policy)
        else expect(result.problems.every(({ path }) => path.startsWith('policy'))).toBe(true)
      }),
      { numRuns: 500 },
    )
  })
})

describe('a stored policy', () => {
  test('is read back as it was resolved', () => {
    const policy = policyOf({ overlap: 'queue', retry: { maxAttempts: 2 } })

    expect(readPolicy(JSON.parse(JSON.stringify(policy)))).toEqual(policy)
  })

  test.each([
    ['nothing', undefined, 'policy: expected an object, got nothing'],
    ['incomplete', { ...RESOLVED, overlap: undefined }, 'policy.overlap: expected one of'],
    ['a cap below its base', { ...RESOLVED, retry: { ...RESOLVED.retry, capSeconds: 29 } }, 'policy.retry: expected'],
  ])('is rejected with an error if it is %s', (_, json, message) => {
    expect(() => readPolicy(json)).toThrow(`a stored policy cannot be read: ${message}`)
  })

  test('of a newer release is read without its new fields, so that an old worker can use it', () => {
    expect(readPolicy({ ...RESOLVED, colour: 'blue', retry: { ...RESOLVED.retry, shape: 'round' } })).toEqual(RESOLVED)
  })
})

test('the reason of an auto-pause is auto:consecutive_failures', () => {
  expect(AUTO_PAUSE_REASON).toBe('auto:consecutive_failures')
})

test.each([
  [10, 0, false],
  [10, 9, false],
  [10, 10, true],
  [10, 11, true],
  [3, 2, false],
  [3, 3, true],
])('with a threshold of %i and %i consecutive failures, pausing is %s', (threshold, consecutiveFailures, pauses) => {
  expect(shouldAutoPause({ threshold, consecutiveFailures })).toBe(pauses)
})

test.each([0, 1, 1000])('a threshold of 0 does not pause after %i failures', (consecutiveFailures) => {
  expect(shouldAutoPause({ threshold: 0, consecutiveFailures })).toBe(false)
})
