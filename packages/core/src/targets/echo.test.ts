import { describe, expect, test } from 'vitest'

import type { TargetContext } from '../ports/target.ts'
import { echoTarget } from './echo.ts'

type Spec = TargetContext<{ readonly kind: 'echo'; readonly payload?: unknown }>

const dispatch = (spec: Spec['spec']) => echoTarget.dispatch({ spec } as Spec, AbortSignal.abort())

describe('an echo', () => {
  test('answers its payload, whatever JSON it is, and null without one', async () => {
    const payloads = [{ list: ['a'] }, 'text', 0, false, null]

    const results = await Promise.all(payloads.map((payload) => dispatch({ kind: 'echo', payload })))

    expect(results).toEqual(payloads.map((result) => ({ kind: 'succeeded', result })))
    expect(await dispatch({ kind: 'echo' })).toEqual({ kind: 'succeeded', result: null })
  })

  test('refuses a field that it does not know', () => {
    expect(echoTarget.schema.safeParse({ kind: 'echo', paylaod: 1 }).success).toBe(false)
  })

  test('takes a payload as long as the ledger keeps, and refuses a longer one', () => {
    const check = (payload: string) =>
      echoTarget.check?.({ spec: { kind: 'echo', payload } } as never, { allowedHosts: null })

    expect(check('x'.repeat(4094))).toEqual([])
    expect(check('x'.repeat(4095))).toEqual([
      { path: 'payload', message: 'expected at most 4096 bytes of JSON, got 4097: the ledger keeps it for every run' },
    ])
    expect(check('é'.repeat(2048))).toHaveLength(1)
  })
})
