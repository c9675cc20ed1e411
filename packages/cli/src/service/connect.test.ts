import { ApiError, type ProblemCode } from '@carillon/api'
import { describe, expect, test } from 'vitest'

import { retryWhileBusy } from './connect.ts'

function refusal(code: ProblemCode, retryAfterSeconds: number | null): ApiError {
  return new ApiError({ code, status: 429, detail: code, errors: [] }, retryAfterSeconds)
}

/** A server that gives these answers one after another, and a clock that records each wait. */
function setup(...answers: (ApiError | string)[]) {
  const waits: number[] = []
  const clock = {
    now: () => 0,
    sleep: async (ms: number) => void waits.push(ms),
    after: () => () => undefined,
    every: () => undefined,
  }
  const request = async (): Promise<string> => {
    const answer = answers.shift() ?? 'nothing left'
    if (answer instanceof ApiError) throw answer
    return answer
  }
  return { waits, ask: () => retryWhileBusy({ clock, signal: new AbortController().signal }, request) }
}

describe('a request to a busy server', () => {
  test('is repeated after the time that the server states, or after a second', async () => {
    const { waits, ask } = setup(refusal('rate_limited', 7), refusal('unavailable', null), 'done')

    await expect(ask()).resolves.toBe('done')
    expect(waits).toEqual([7000, 1000])
  })

  test('is not repeated if it would be refused again', async () => {
    const { waits, ask } = setup(refusal('invalid_input', null), 'done')

    await expect(ask()).rejects.toMatchObject({ code: 'invalid_input' })
    expect(waits).toEqual([])
  })

  test('fails after 30 tries', async () => {
    const { waits, ask } = setup(...Array.from({ length: 100 }, () => refusal('rate_limited', 1)))

    await expect(ask()).rejects.toMatchObject({ code: 'rate_limited' })
    expect(waits).toHaveLength(29)
  })
})
