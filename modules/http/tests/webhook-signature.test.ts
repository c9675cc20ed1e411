import { createHmac } from 'node:crypto'

import { Webhook } from 'standardwebhooks'
import { describe, expect, test } from 'vitest'

import { readSigningKeys, webhookHeaders } from '../src/auth/webhook-signature.ts'

// The example in the tests of the reference libraries.
const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const MESSAGE = { id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', timestamp: 1_614_265_330, body: '{"test": 2432232314}' }
const OTHER_SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`

function sign(secret: string, message = MESSAGE): Record<string, string> {
  return Object.fromEntries(webhookHeaders(message, readSigningKeys(secret) ?? []))
}

describe('a signature', () => {
  test('equals that of the published example', () => {
    expect(sign(SECRET)).toEqual({
      'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      'webhook-timestamp': '1614265330',
      'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    })
  })

  test.each(['', '{"a":1}', '{"é":"😀"}', 'x'.repeat(100_000)])('equals that of the reference library', (body) => {
    const message = { ...MESSAGE, body }

    const expected = new Webhook(OTHER_SECRET).sign(message.id, new Date(message.timestamp * 1000), body)
    expect(sign(OTHER_SECRET, message)['webhook-signature']).toBe(expected)
  })

  test('changes with every byte of the id, the time, the body and the key', () => {
    const signatures = [
      sign(SECRET),
      sign(OTHER_SECRET),
      sign(SECRET, { ...MESSAGE, body: '{"test": 2432232315}' }),
      sign(SECRET, { ...MESSAGE, timestamp: MESSAGE.timestamp + 1 }),
      sign(SECRET, { ...MESSAGE, id: 'msg_p5jXN8AQM9LWM0D4loKWxJel' }),
    ].map((headers) => headers['webhook-signature'])

    expect(new Set(signatures).size).toBe(5)
  })

  test('is refused by the reference library if a byte of the body was altered, or after five minutes', () => {
    const message = { id: 'run', timestamp: Math.floor(Date.now() / 1000), body: '{"amount":1}' }
    const receiver = new Webhook(SECRET)

    expect(receiver.verify(message.body, sign(SECRET, message))).toEqual({ amount: 1 })
    expect(() => receiver.verify('{"amount":2}', sign(SECRET, message))).toThrow('No matching signature')
    const old = { ...message, timestamp: message.timestamp - 301 }
    expect(() => receiver.verify(old.body, sign(SECRET, old))).toThrow('too old')
  })

  test('is made with each key during a rotation, so that a receiver with either key can verify it', () => {
    const message = { ...MESSAGE, timestamp: Math.floor(Date.now() / 1000) }
    const headers = sign(`${SECRET} ${OTHER_SECRET}`, message)

    expect(headers['webhook-signature']?.split(' ')).toEqual([
      sign(SECRET, message)['webhook-signature'],
      sign(OTHER_SECRET, message)['webhook-signature'],
    ])
    for (const secret of [SECRET, OTHER_SECRET]) {
      expect(() => new Webhook(secret).verify(message.body, headers)).not.toThrow()
    }
    const stranger = `whsec_${Buffer.alloc(24, 1).toString('base64')}`
    expect(() => new Webhook(stranger).verify(message.body, headers)).toThrow('No matching signature')
  })

  test('is the HMAC-SHA256 of the id, the time and the body, joined by dots', () => {
    const key = Buffer.alloc(32, 7)
    const digest = createHmac('sha256', key).update(`${MESSAGE.id}.${MESSAGE.timestamp}.${MESSAGE.body}`)

    expect(sign(OTHER_SECRET)['webhook-signature']).toBe(`v1,${digest.digest('base64')}`)
  })
})

describe('a signing secret', () => {
  const key = (bytes: number): string => `whsec_${Buffer.alloc(bytes, 5).toString('base64')}`

  test.each([
    ['one key of 24 bytes', key(24), [24]],
    ['one key of 64 bytes', key(64), [64]],
    ['five keys', [24, 25, 32, 48, 64].map(key).join(' '), [24, 25, 32, 48, 64]],
    ['keys on lines of their own', ` ${key(24)}\n\n${key(32)}\n`, [24, 32]],
  ])('may hold %s', (_what, secret, lengths) => {
    expect(readSigningKeys(secret)?.map(({ length }) => length)).toEqual(lengths)
  })

  test.each([
    ['nothing', ''],
    ['blanks', '  '],
    ['a key without its prefix', key(32).slice('whsec_'.length)],
    ['a key with another prefix', key(32).replace('whsec_', 'whsk_')],
    ['too short a key', key(23)],
    ['too long a key', key(65)],
    ['no base64', `whsec_${'!'.repeat(32)}`],
    ['base64 for URLs', `whsec_${'-_'.repeat(16)}`],
    ['base64 that is cut off', key(32).slice(0, -1)],
    ['base64 with unused bits at its end', `whsec_${'A'.repeat(42)}B=`],
    ['six keys', Array.from({ length: 6 }, () => key(24)).join(' ')],
    ['a key and something else', `${key(32)} hunter2`],
    ['keys with a comma between', `${key(24)},${key(24)}`],
  ])('may not hold %s', (_what, secret) => {
    expect(readSigningKeys(secret)).toBeUndefined()
  })
})
