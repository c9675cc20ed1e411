import { randomBytes } from 'node:crypto'

import { renewLogins } from '@carillon/core'

import { speakingOf, type Pool } from './database.ts'

/** The addresses of one database for those who use it. */
export interface DatabaseUrls {
  readonly api: string
  readonly worker: string
}

const PASSWORD_BYTES = 24

/** Of a Postgres of our own: each with a login that owns nothing. What production does by hand. */
export async function embeddedUrls(owner: Pool, url: string): Promise<DatabaseUrls> {
  const logins = await speakingOf(url, () =>
    renewLogins(owner, () => randomBytes(PASSWORD_BYTES).toString('base64url')),
  )
  const urlOf = ({ user, password }: { readonly user: string; readonly password: string }): string => {
    const address = new URL(url)
    address.username = user
    address.password = password
    return address.href
  }
  return { api: urlOf(logins.api), worker: urlOf(logins.worker) }
}
