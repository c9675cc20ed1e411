import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { describe, expect, test } from 'vitest'

import { checkManifests, RESERVED_WORDS } from '../../src/modules/manifests.ts'
import type { AnyManifest } from '../../src/ports/module.ts'
import { manifestOf } from './made-up-module.ts'

function refusalOf(...manifests: unknown[]): string {
  try {
    checkManifests(manifests as AnyManifest[])
    return 'accepted'
  } catch (error) {
    expect(error).toMatchObject({ code: 'module_refused' })
    return (error as Error).message
  }
}

const LEDGER = { name: 'ledger' }

describe('the manifests of modules', () => {
  test('are accepted if their names, kinds, reasons and ports are distinct, and what they use is provided', () => {
    const manifests = [
      manifestOf('billing', { provides: [LEDGER], reasons: { no_credit: 'the account has no credit' } }),
      manifestOf('graphs', { uses: [LEDGER], usesIfThere: [{ name: 'budget' }], migrations: new URL('file:///m/') }),
    ]

    expect(checkManifests(manifests)).toBe(manifests)
  })

  test.each<[what: string, manifest: unknown, message: string]>([
    ['no object', 'billing', 'module: expected the manifest of a module, got "billing"'],
    [
      'another port',
      { ...manifestOf('billing'), port: 2 },
      'module billing: port: expected 1, got 2: install a version',
    ],
    ['no port', { name: 'billing' }, 'module billing: port: expected 1, got nothing'],
    ['a name in capitals', manifestOf('Billing'), 'module Billing: name: expected a name of up to 31 lower-case'],
    [
      'a name of core’s tables',
      manifestOf('schedule_notes'),
      'expected a name that core does not use, got "schedule_notes"',
    ],
    [
      'a kind with a dash',
      manifestOf('billing', { kinds: ['pay-out'] }),
      'module billing: kinds.0: expected a name of up to 31',
    ],
    [
      'a reason of core',
      manifestOf('billing', { reasons: { overlap: 'x y' } }),
      'module billing: reasons.overlap: expected reasons of lower-case',
    ],
    [
      'a reason in capitals',
      manifestOf('billing', { reasons: { NoCredit: 'x y' } }),
      'expected reasons of lower-case letters',
    ],
    [
      'a sentence with a full stop',
      manifestOf('billing', { reasons: { no_credit: 'It has none.' } }),
      'module billing: reasons.no_credit: expected a sentence of one line without a full stop at its end, got "It has none."',
    ],
    [
      'a folder as text',
      { ...manifestOf('billing'), migrations: './m' },
      'module billing: migrations: expected the URL of a folder',
    ],
    [
      'settings that are no object',
      { ...manifestOf('billing'), settings: {} },
      'module billing: settings: expected an object schema of zod',
    ],
    [
      'no load',
      { ...manifestOf('billing'), load: undefined },
      'module billing: load: expected a function, got nothing',
    ],
    [
      'a misspelt field',
      { ...manifestOf('billing'), kind: ['x'] },
      'module billing: kind: expected no such field, got "kind"',
    ],
    [
      'a port without a name',
      { ...manifestOf('billing'), provides: [{}] },
      'module billing: provides.0.name: expected the name of a port',
    ],
    [
      'nothing that a process needs',
      manifestOf('billing', { kinds: [] }),
      'module billing: expected kinds, operations, commands or a port that it provides, got none: no process would load it',
    ],
  ])('are refused with %s', (_what, manifest, message) => {
    expect(refusalOf(manifest)).toContain(message)
  })

  test.each<[what: string, first: AnyManifest, second: AnyManifest, message: string]>([
    [
      'the same name',
      manifestOf('billing'),
      manifestOf('billing', { kinds: ['x'] }),
      'module billing: name: expected words that no other module has, got billing of billing',
    ],
    [
      'the same kind',
      manifestOf('billing', { kinds: ['pay'] }),
      manifestOf('bank', { kinds: ['pay'] }),
      'module bank: kinds: expected words that no other module has, got pay of billing',
    ],
    [
      'the same reason',
      manifestOf('billing', { reasons: { broke: 'there is no money' } }),
      manifestOf('bank', { reasons: { broke: 'there is no money' } }),
      'module bank: reasons: expected words',
    ],
    [
      'the same port',
      manifestOf('billing', { provides: [LEDGER] }),
      manifestOf('bank', { provides: [LEDGER] }),
      'module bank: provides: expected words',
    ],
    [
      'a name within the other',
      manifestOf('bank'),
      manifestOf('bank_gold'),
      'module bank_gold: name: expected a name that does not begin with bank_, that of another module',
    ],
  ])('are refused together with %s', (_what, first, second, message) => {
    expect(refusalOf(first, second)).toContain(message)
  })

  test('are refused if no module provides a port that one of them uses', () => {
    expect(refusalOf(manifestOf('graphs', { uses: [LEDGER] }))).toBe(
      'module graphs: uses: expected a module that provides ledger, got none: add one to CARILLON_MODULES',
    )
  })
})

test('no object of core’s schema can be taken for that of a module', () => {
  const dump = readFileSync(join(import.meta.dirname, '../../src/db/schema.sql'), 'utf8')
  const names = [...dump.matchAll(/^create (?:table|type) (\w+)|^CREATE OR REPLACE FUNCTION (\w+)\(/gm)]
  const words = names.map(([, relation, routine]) => (relation ?? routine ?? '').split('_')[0] ?? '')

  expect(words.length).toBeGreaterThan(50)
  expect([...new Set(words)].filter((word) => !RESERVED_WORDS.has(word))).toEqual([])
})
