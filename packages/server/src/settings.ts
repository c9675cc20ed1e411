import { isIP } from 'node:net'
import { resolve } from 'node:path'

import { createHttpTarget } from '@carillon/targets'
import { z } from 'zod'

import { ServiceError } from './service-error.ts'

const LOG_LEVELS = ['silent', 'error', 'warn', 'info', 'debug'] as const
const ADMIN_KEY_MIN_LENGTH = 24

const settingsSchema = z.object({
  host: expecting('an address or a host name to listen on, such as 127.0.0.1 or ::', (text) =>
    isIP(text) !== 0 || /^[a-z\d]([a-z\d.-]{0,251}[a-z\d])?$/i.test(text) ? text : undefined,
  ),
  port: wholeNumber('a port from 0 (any that is free) to 65535', 0, 65_535),
  dataDir: expecting('the path of a directory', (text) => (text.includes('\0') ? undefined : resolve(text))),
  databaseUrl: expecting(
    'a URL such as postgres://user:password@host:5432/database',
    (text) => (/^postgres(ql)?:\/\//i.test(text) && URL.canParse(text) ? text : undefined),
    schemeOf,
  ).nullable(),
  adminKey: expecting(
    `${ADMIN_KEY_MIN_LENGTH} characters or more, each of them visible ASCII`,
    (text) => (isAdminKey(text) ? text : undefined),
    (text) => `${text.length} characters that are not`,
  ).nullable(),
  allowedTargets: z
    .union([z.string().transform((text) => text.split(',')), z.array(z.string()).readonly()])
    .transform(readPatterns)
    .nullable(),
  requestsPerMinute: wholeNumber('a whole number of requests per minute, 1 or more', 1, 1_000_000_000).nullable(),
  logLevel: expecting(`one of ${LOG_LEVELS.join(', ')}`, (text) => LOG_LEVELS.find((level) => level === text)),
})

/** What the environment and the flags of the command line say, checked, with what they leave out filled in. */
export interface Settings {
  readonly host: string
  /** 0: any that is free. */
  readonly port: number
  /** Absolute. */
  readonly dataDir: string
  /** Null: a Postgres of our own in the data directory. */
  readonly databaseUrl: string | null
  /** Null: made once, and kept in the data directory. */
  readonly adminKey: string | null
  /** Host patterns that an HTTP target may reach. Null: loopback on a Postgres of our own, otherwise none. */
  readonly allowedTargets: readonly string[] | null
  /** Of each API key. Null: what the API allows unless told. */
  readonly requestsPerMinute: number | null
  readonly logLevel: (typeof LOG_LEVELS)[number]
}

interface Source {
  readonly variable: string
  readonly flag: string
  readonly otherwise: string | null
}

const SOURCES: { readonly [Name in keyof Settings]: Source } = {
  host: { variable: 'CARILLON_HOST', flag: '--host', otherwise: '127.0.0.1' },
  port: { variable: 'CARILLON_PORT', flag: '--port', otherwise: '7400' },
  dataDir: { variable: 'CARILLON_DATA_DIR', flag: '--data-dir', otherwise: '.carillon' },
  databaseUrl: { variable: 'DATABASE_URL', flag: '--database-url', otherwise: null },
  adminKey: { variable: 'CARILLON_ADMIN_KEY', flag: '--admin-key', otherwise: null },
  allowedTargets: { variable: 'CARILLON_ALLOWED_TARGETS', flag: '--allowed-targets', otherwise: null },
  requestsPerMinute: { variable: 'CARILLON_RATE_LIMIT', flag: '--rate-limit', otherwise: null },
  logLevel: { variable: 'CARILLON_LOG_LEVEL', flag: '--log-level', otherwise: 'info' },
}

/**
 * A flag outweighs its variable. A variable that is empty counts as unset.
 *
 * @throws ServiceError `settings_invalid`, naming the variable or flag at fault; it never tells a secret
 */
export function readSettings(
  env: Readonly<Record<string, string | undefined>>,
  flags: Partial<Settings> = {},
): Settings {
  const names = Object.keys(SOURCES) as (keyof Settings)[]
  const raw = names.map((name) => {
    const { variable, otherwise } = SOURCES[name]
    const text = env[variable]?.trim() ?? ''
    return [name, flags[name] === undefined ? (text === '' ? otherwise : text) : flags[name]]
  })
  const result = settingsSchema.safeParse(Object.fromEntries(raw))
  if (result.success) return result.data
  const { path, message } = result.error.issues[0] ?? { path: [], message: 'is wrong' }
  const name = names.find((known) => known === path[0]) ?? 'host'
  const label = flags[name] === undefined ? SOURCES[name].variable : SOURCES[name].flag
  throw new ServiceError('settings_invalid', `${label}: ${message}`)
}

/** Visible ASCII, so that it can be sent in a header as it is. */
export function isAdminKey(text: string): boolean {
  return text.length >= ADMIN_KEY_MIN_LENGTH && /^[\x21-\x7e]+$/.test(text)
}

function expecting<Output>(
  expected: string,
  read: (text: string) => Output | undefined,
  describe: (text: string) => string = (text) => JSON.stringify(text),
): z.ZodType<Output> {
  return z.union([z.string(), z.number().transform(String)]).transform((text, context) => {
    const output = read(text)
    if (output !== undefined) return output
    context.addIssue(`expected ${expected}, got ${describe(text)}`)
    return z.NEVER
  })
}

function wholeNumber(expected: string, min: number, max: number): z.ZodType<number> {
  return expecting(expected, (text) => {
    const value = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN
    return value >= min && value <= max ? value : undefined
  })
}

/** All that may be told of a URL that may hold a password. */
function schemeOf(text: string): string {
  const scheme = /^(?<scheme>[a-z][a-z\d+.-]{0,20}):\/\//i.exec(text)?.groups?.['scheme']
  return scheme === undefined ? 'something that is no URL' : `one of ${scheme}:// that cannot be read`
}

function readPatterns(texts: readonly string[], context: z.RefinementCtx): readonly string[] {
  const patterns = texts.map((text) => text.trim()).filter((text) => text !== '')
  try {
    // Made only to have its list read: a misspelt pattern is a mistake of the settings, not of the first schedule.
    createHttpTarget({ allowedHosts: patterns })
    return patterns
  } catch (error) {
    context.addIssue(error instanceof Error ? error.message : String(error))
    return z.NEVER
  }
}
