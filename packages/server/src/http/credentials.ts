import type { FastifyRequest } from 'fastify'

import { SESSION_COOKIE } from '../sign-in.ts'

/** What a request shows to prove whose it is. */
export type Credentials =
  | { readonly kind: 'key'; readonly secret: string }
  | { readonly kind: 'session'; readonly cookie: string }

interface Options {
  /** Calendar programs know no other way to send a key than as a password. */
  readonly isBasicAllowed: boolean
}

/** A key outweighs a session. Undefined if there is neither, or nothing that could be one. */
export function credentialsOf(
  { headers, cookies }: Pick<FastifyRequest, 'headers' | 'cookies'>,
  { isBasicAllowed }: Options,
): Credentials | undefined {
  const { authorization } = headers
  if (authorization === undefined) {
    const cookie = cookies[SESSION_COOKIE]
    return cookie === undefined ? undefined : { kind: 'session', cookie }
  }
  const [, scheme = '', value = ''] = /^([a-z]+) +(\S+)$/i.exec(authorization) ?? []
  switch (scheme.toLowerCase()) {
    case 'bearer':
      return { kind: 'key', secret: value }
    case 'basic':
      return isBasicAllowed ? { kind: 'key', secret: passwordOf(value) } : undefined
    default:
      return undefined
  }
}

/** Of `name:password`, whatever the name is. */
function passwordOf(encoded: string): string {
  const text = Buffer.from(encoded, 'base64').toString('utf8')
  return text.slice(text.indexOf(':') + 1)
}
