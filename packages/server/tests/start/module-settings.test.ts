import type { AnyManifest } from '@carillon/core'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'

import { readModuleSettings, refuseUnknownVariables, variableOf } from '../../src/start/module-settings.ts'

function manifestOf(settings?: z.ZodObject): AnyManifest {
  const load = () => Promise.resolve({ create: () => ({}) })
  return { port: 1, name: 'billing', version: '1', kinds: ['billing'], load, ...(settings && { settings }) }
}

function refusalOf(work: () => unknown): string {
  try {
    work()
    return 'accepted'
  } catch (error) {
    expect(error).toMatchObject({ code: 'settings_invalid' })
    return (error as Error).message
  }
}

describe('the settings of a module', () => {
  test('are read from variables that begin with its name, each as its schema says', () => {
    const settings = z.object({
      apiUrl: z.url(),
      maxRuns: z.int().default(5),
      share: z.number().optional(),
      isStrict: z.boolean(),
      regions: z.array(z.string()),
      plan: z.enum(['free', 'paid']).default('free'),
      prices: z.object({ run: z.number() }),
      s3Bucket: z.string().nullable().default(null),
    })
    const env = {
      CARILLON_BILLING_API_URL: ' https://billing.example.com ',
      CARILLON_BILLING_SHARE: '0.25',
      CARILLON_BILLING_IS_STRICT: 'false',
      CARILLON_BILLING_REGIONS: 'eu, us',
      CARILLON_BILLING_PLAN: '',
      CARILLON_BILLING_PRICES: '{"run":0.01}',
      CARILLON_BILLING_S3_BUCKET: '2024',
    }

    expect(readModuleSettings(env, manifestOf(settings))).toEqual({
      apiUrl: 'https://billing.example.com',
      maxRuns: 5,
      share: 0.25,
      isStrict: false,
      regions: ['eu', 'us'],
      plan: 'free',
      prices: { run: 0.01 },
      s3Bucket: '2024',
    })
    expect(readModuleSettings(env, manifestOf())).toEqual({})
  })

  test.each<[what: string, schema: z.ZodObject, text: string | undefined, message: string]>([
    [
      'a text for a number',
      z.object({ maxRuns: z.int() }),
      'many',
      'CARILLON_BILLING_MAX_RUNS: expected number, got something else',
    ],
    [
      'nothing',
      z.object({ maxRuns: z.int('expected a whole number') }),
      undefined,
      'CARILLON_BILLING_MAX_RUNS: expected a whole number, got nothing',
    ],
    [
      'yes for true',
      z.object({ maxRuns: z.boolean() }),
      'yes',
      'CARILLON_BILLING_MAX_RUNS: expected boolean, got something else',
    ],
    [
      'a broken list',
      z.object({ maxRuns: z.array(z.string()) }),
      'a,,b',
      'CARILLON_BILLING_MAX_RUNS: expected array, got something else',
    ],
    [
      'no JSON',
      z.object({ maxRuns: z.object({}) }),
      '{',
      'CARILLON_BILLING_MAX_RUNS: expected object, got something else',
    ],
    [
      'another word',
      z.object({ maxRuns: z.enum(['few']) }),
      'secret',
      'CARILLON_BILLING_MAX_RUNS: expected "few", got something else',
    ],
    [
      'a number that is too small',
      z.object({ maxRuns: z.int().min(3, 'expected 3 or more, got fewer') }),
      '2',
      'CARILLON_BILLING_MAX_RUNS: expected 3 or more, got something else',
    ],
    [
      'two that contradict each other',
      z.object({ maxRuns: z.int() }).refine(() => false, 'expected fewer runs than accounts, got more'),
      '2',
      'CARILLON_BILLING_*: expected fewer runs than accounts, got nothing',
    ],
  ])('name the variable at fault and do not quote its value: %s', (_what, schema, text, message) => {
    const refusal = refusalOf(() => readModuleSettings({ CARILLON_BILLING_MAX_RUNS: text }, manifestOf(schema)))

    expect(refusal).toContain(message)
    expect(refusal).not.toContain('secret')
  })

  test('have no variables that the module does not know', () => {
    const manifests = [manifestOf(z.object({ maxRuns: z.int() }))]
    const refuse = (env: Record<string, string>) => refusalOf(() => refuseUnknownVariables(env, manifests))

    expect(refuse({ CARILLON_BILLING_MAXRUNS: '3' })).toBe(
      'CARILLON_BILLING_MAXRUNS: expected a setting of the module billing (CARILLON_BILLING_MAX_RUNS), got another name',
    )
    expect(refusalOf(() => refuseUnknownVariables({ CARILLON_BILLING_URL: 'x' }, [manifestOf()]))).toContain(
      '(it has none)',
    )
    expect(refuse({ CARILLON_BILLING_MAX_RUNS: '3', CARILLON_BILLING_URL: '', CARILLON_OTHER: 'x' })).toBe('accepted')
  })

  test('have names in capitals with underscores', () => {
    expect([variableOf('billing', 'apiUrl'), variableOf('bill_x', 'isOn'), variableOf('billing', 'url2Get')]).toEqual([
      'CARILLON_BILLING_API_URL',
      'CARILLON_BILL_X_IS_ON',
      'CARILLON_BILLING_URL2_GET',
    ])
  })
})
