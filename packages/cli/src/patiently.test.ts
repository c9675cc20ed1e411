import { ApiError, type ProblemCode } from '@carillon/api'
import { describe, expect, test } from 'vitest'

import { patiently } from './patiently.ts'

function refusal(code: ProblemCode, retryAfterSeconds: number | null): ApiError {
  return new ApiError({ code, status: 429, detail: code, errors: [] }, retryAfterSeconds)
}

/** Answers what it is told to, one after the other, and tells how long was waited. */
function setup(...answers: (ApiError | string)[]) {
  const waits: number[] = []
  const clock = {
    now: () => 0,
    sleep: async (ms: number) => void waits.push(ms),
    after: () => () => undefined,
    every: () => undefined,
  }
  const ask = async (): Promise<string> => {
    const answer = answers.shift() ?? 'nothing left'
    if (answer instanceof ApiError) throw answer
    return answer
  }
  return { waits, ask: () => patiently({ clock, signal: new AbortController().signal }, ask) }
}

describe('asking patiently', () => {
  test('waits as long as the service says, and asks again', async () => {
    const { waits, ask } = setup(refusal('rate_limited', 7), refusal('unavailable', null), 'done')

    await expect(ask()).resolves.toBe('done')
    expect(waits).toEqual([7000, 1000])
  })

  test('does not ask again what would be refused again', async () => {
    const { waits, ask } = setup(refusal('invalid_input', null), 'done')

    await expect(ask()).rejects.toMatchObject({ code: 'invalid_input' })
    expect(waits).toEqual([])
  })

  test('ends', async () => {
    const { waits, ask } = setup(...Array.from({ length: 100 }, () => refusal('rate_limited', 1)))

    await expect(ask()).rejects.toMatchObject({ code: 'rate_limited' })
    expect(waits).toHaveLength(29)
  })
})
