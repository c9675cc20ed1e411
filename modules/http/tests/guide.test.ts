import { readFileSync } from 'node:fs'

import { expect, test } from 'vitest'

import { readSigningKeys, webhookHeaders } from '../src/auth/webhook-signature.ts'
import { dispatchTo, httpTarget } from './attempt.ts'

const GUIDE = readFileSync(new URL('../../../docs/guides/http-targets.md', import.meta.url), 'utf8')

function blocks(language: string): string[] {
  return [...GUIDE.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'gms'))].map(([, text = '']) => text)
}

type IsSigned = (secret: string, headers: Record<string, string>, body: string, now: number) => boolean

test('the receiver in the guide accepts signed requests only', async () => {
  const [program = ''] = blocks('js')
  const { isSigned } = (await import(`data:text/javascript,${encodeURIComponent(program)}`)) as { isSigned: IsSigned }
  const secrets = [1, 2, 3].map((byte) => `whsec_${Buffer.alloc(32, byte).toString('base64')}`)
  const [first = '', second = '', third = ''] = secrets
  const now = 1_798_135_200_000
  const message = { id: 'run', timestamp: now / 1000, body: '{"é":1}' }
  const headers = Object.fromEntries(webhookHeaders(message, readSigningKeys(`${first} ${second}`) ?? []))

  expect(isSigned(first, headers, message.body, now)).toBe(true)
  expect(isSigned(second, headers, message.body, now + 300_000)).toBe(true)
  expect(isSigned(third, headers, message.body, now)).toBe(false)
  expect(isSigned(first, headers, `${message.body} `, now)).toBe(false)
  expect(isSigned(first, headers, message.body, now + 301_000)).toBe(false)
  expect(isSigned(first, { ...headers, 'webhook-id': 'other' }, message.body, now)).toBe(false)
  expect(isSigned(first, {}, message.body, now)).toBe(false)
})

test('the refusal in the guide is the one that the ledger contains', async () => {
  const shown = blocks('json').find((block) => block.includes('address_not_allowed')) ?? ''
  const resolve = async () => [{ address: '10.0.0.7', family: 4 }]
  await using target = httpTarget({ allowedHosts: ['digest.internal'], resolve })

  const outcome = await dispatchTo(target, { url: 'https://digest.internal/run' })

  expect(outcome).toMatchObject({ error: JSON.parse(shown) as unknown })
})
