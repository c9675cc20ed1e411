import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { CLAIM_MAPPING_DEFAULT, claimedIdentity } from '../../src/auth/claims.ts'
import { readJwtSettings } from '../../src/start/access-settings.ts'

const GUIDE = readFileSync(join(import.meta.dirname, '../../../../docs/guides/authentication.md'), 'utf8')

function block(language: string): string {
  return new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'ms').exec(GUIDE)?.[1] ?? ''
}

function variablesIn(text: string): string[] {
  return [...new Set(text.match(/\bCARILLON_(?:JWT|OPENFGA)_[A-Z_]+\b/g))].toSorted()
}

test('the guide names every variable that the server reads, and no other', () => {
  const read = readFileSync(join(import.meta.dirname, '../../src/start/access-settings.ts'), 'utf8')

  expect(variablesIn(GUIDE)).toEqual(variablesIn(read))
  expect(variablesIn(GUIDE).length).toBeGreaterThan(15)
})

test('the token in the guide gives the identity that the guide states, with the settings in the guide', () => {
  const env = Object.fromEntries(
    block('sh')
      .trim()
      .split('\n')
      .map((line) => line.split('=') as [string, string]),
  )
  const claims = JSON.parse(block('json')) as Record<string, unknown>

  const settings = readJwtSettings(env)

  expect(claims).toMatchObject({ iss: settings?.issuer, aud: expect.arrayContaining([settings?.audience]) as unknown })
  expect(claimedIdentity(claims, settings?.claims ?? CLAIM_MAPPING_DEFAULT)).toMatchObject({
    identity: { caller: { tenantId: 'acme', projectId: 'web', subject: 'user:7f3a91' }, role: 'admin' },
  })
})
