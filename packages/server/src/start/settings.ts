import { isIP } from 'node:net'
import { resolve } from 'node:path'

import {
  messageOf,
  PROJECT_SCHEDULES,
  RETENTION_DAYS,
  SERVICE_DEFAULTS,
  TENANT_REQUESTS_PER_MINUTE,
  TENANT_SLOT_DISTANCE_SECONDS,
  TRANSCRIPT_BYTES,
  USER_SCHEDULES,
} from '@carillon/api'
import { isSchemaName, RESERVED_WORDS, SCHEMA_DEFAULT, SCHEMA_EXPECTED } from '@carillon/core'
import { parseAllowedHosts } from '@carillon/outbound'
import { z } from 'zod'

import { readJwtSettings, readOpenFgaSettings, type JwtSettings, type OpenFgaSettings } from './access-settings.ts'
import { isVisibleAscii, listOf, variableText, type Environment } from './environment.ts'
import { OperatorError } from './operator-error.ts'

const LOG_LEVELS = ['silent', 'error', 'warn', 'info', 'debug'] as const
export const ADMIN_KEY_MIN_LENGTH = 24
export const SECRETS_KEY_BYTES = 32

const settingsSchema = z.object({
  host: expecting('an address or a host name to listen on, such as 127.0.0.1 or ::', (text) =>
    isIP(text) !== 0 || /^[a-z\d]([a-z\d.-]{0,251}[a-z\d])?$/i.test(text) ? text : undefined,
  ),
  port: wholeNumber('a port from 0 (any that is free) to 65535', { min: 0, max: 65_535 }),
  dataDir: expecting('the path of a directory', (text) => (text.includes('\0') ? undefined : resolve(text))),
  databaseUrl: expecting(
    'a URL such as postgres://user:password@host:5432/database',
    (text) => (/^postgres(ql)?:\/\//i.test(text) && URL.canParse(text) ? text : undefined),
    schemeOf,
  ).nullable(),
  schema: expecting(SCHEMA_EXPECTED, (text) => (isSchemaName(text) ? text : undefined)),
  adminKey: expecting(
    `${ADMIN_KEY_MIN_LENGTH} characters or more, each of them visible ASCII`,
    (text) => (isAdminKey(text) ? text : undefined),
    adminKeyFault,
  ).nullable(),
  allowedTargets: z
    .union([z.string().transform((text) => text.split(',')), z.array(z.string()).readonly()])
    .transform(readPatterns)
    .nullable(),
  requestsPerMinute: wholeNumber(
    'a whole number of requests per minute, 1 or more',
    TENANT_REQUESTS_PER_MINUTE,
  ).nullable(),
  maxSchedulesPerProject: quota(PROJECT_SCHEDULES),
  maxSchedulesPerUser: quota(USER_SCHEDULES),
  minimumSeconds: wholeNumber(
    `a whole number of seconds from ${TENANT_SLOT_DISTANCE_SECONDS.min} to ${TENANT_SLOT_DISTANCE_SECONDS.max}`,
    TENANT_SLOT_DISTANCE_SECONDS,
  ),
  retentionDays: wholeNumber(
    `a whole number of days from ${RETENTION_DAYS.min} to ${RETENTION_DAYS.max}`,
    RETENTION_DAYS,
  ),
  modules: z
    .union([z.string().transform((text) => text.split(',')), z.array(z.string()).readonly()])
    .transform((entries) => entries.map((entry) => entry.trim()).filter((entry) => entry !== '')),
  publicUrl: expecting('the URL at which called services reach the API, such as https://carillon.example.com', (text) =>
    /^https?:\/\/[^/?#@]+(?:\/[^?#]*)?$/i.test(text) && URL.canParse(text) ? text.replace(/\/+$/, '') : undefined,
  ).nullable(),
  transcriptBytes: wholeNumber(
    `a whole number of bytes from ${TRANSCRIPT_BYTES.min} to ${TRANSCRIPT_BYTES.max}`,
    TRANSCRIPT_BYTES,
  ),
  logLevel: expecting(`one of ${LOG_LEVELS.join(', ')}`, (text) => LOG_LEVELS.find((level) => level === text)),
})

/** The checked settings of a process, from the environment and the flags of the command line, with defaults filled in. */
export interface Settings extends FlatSettings {
  /** The variables that can be settings of modules. */
  readonly variables: Environment
  /** The folder to which the files of `modules` are relative. */
  readonly folder: string
  /** Null: tokens are not accepted. */
  readonly jwt: JwtSettings | null
  /** Null: only the built-in permission checks run. */
  readonly openFga: OpenFgaSettings | null
  /**
   * The first key encrypts secrets, and each of them can decrypt. Null: for the embedded Postgres a key is created and kept in the
   * data directory; with any other database secrets cannot be used.
   */
  readonly secretsKeys: readonly Buffer[] | null
}

/** The settings that are one variable and one flag each. */
interface FlatSettings {
  readonly host: string
  /** 0: any free port. */
  readonly port: number
  /** An absolute path. */
  readonly dataDir: string
  /** Null: an embedded Postgres in the data directory. */
  readonly databaseUrl: string | null
  /** The schema that holds Carillon's tables: several Carillons may share a database. */
  readonly schema: string
  /** Null: a key is created once and kept in the data directory. */
  readonly adminKey: string | null
  /** Patterns of the hosts that HTTP targets may call. Null: only loopback with the embedded Postgres, and no host without it. */
  readonly allowedTargets: readonly string[] | null
  /** The rate limit of each key whose tenant has no limit of its own. Null: the default of `createApp`. */
  readonly requestsPerMinute: number | null
  /** The quota of one project. This and the next two apply to tenants without limits of their own. Null: unlimited. */
  readonly maxSchedulesPerProject: number | null
  /** The quota of one `user:…` in a project. Null: unlimited. */
  readonly maxSchedulesPerUser: number | null
  /** The shortest time between two slots of a schedule. */
  readonly minimumSeconds: number
  /** For how many days the ledger keeps its lines. */
  readonly retentionDays: number
  /** Modules of the user's own: files, or names of packages. */
  readonly modules: readonly string[]
  /** Where called services complete runs. Null: at the address on which the API listens. */
  readonly publicUrl: string | null
  /** How many bytes of JSON the transcript of one run may have. */
  readonly transcriptBytes: number
  readonly logLevel: (typeof LOG_LEVELS)[number]
}

interface Source {
  readonly variable: string
  /** Undefined: no command has a flag for it. */
  readonly flag?: string
  readonly otherwise: string | null
}

const SOURCES: { readonly [Name in keyof FlatSettings]: Source } = {
  host: { variable: 'CARILLON_HOST', flag: '--host', otherwise: SERVICE_DEFAULTS.host },
  port: { variable: 'CARILLON_PORT', flag: '--port', otherwise: String(SERVICE_DEFAULTS.port) },
  dataDir: { variable: 'CARILLON_DATA_DIR', flag: '--data-dir', otherwise: SERVICE_DEFAULTS.dataDir },
  databaseUrl: { variable: 'DATABASE_URL', otherwise: null },
  schema: { variable: 'CARILLON_SCHEMA', otherwise: SCHEMA_DEFAULT },
  adminKey: { variable: 'CARILLON_ADMIN_KEY', otherwise: null },
  allowedTargets: { variable: 'CARILLON_ALLOWED_TARGETS', otherwise: null },
  requestsPerMinute: { variable: 'CARILLON_RATE_LIMIT', otherwise: null },
  maxSchedulesPerProject: {
    variable: 'CARILLON_MAX_SCHEDULES_PER_PROJECT',
    otherwise: String(PROJECT_SCHEDULES.default),
  },
  maxSchedulesPerUser: {
    variable: 'CARILLON_MAX_SCHEDULES_PER_USER',
    otherwise: String(USER_SCHEDULES.default),
  },
  minimumSeconds: {
    variable: 'CARILLON_MIN_INTERVAL_SECONDS',
    otherwise: String(TENANT_SLOT_DISTANCE_SECONDS.default),
  },
  retentionDays: {
    variable: 'CARILLON_RETENTION_DAYS',
    otherwise: String(RETENTION_DAYS.default),
  },
  modules: { variable: 'CARILLON_MODULES', otherwise: '' },
  publicUrl: { variable: 'CARILLON_PUBLIC_URL', otherwise: null },
  transcriptBytes: {
    variable: 'CARILLON_TRANSCRIPT_BYTES',
    otherwise: String(TRANSCRIPT_BYTES.default),
  },
  logLevel: { variable: 'CARILLON_LOG_LEVEL', otherwise: 'info' },
}

/**
 * Reads the settings. A flag wins over its variable, and an empty variable counts as unset.
 * @throws OperatorError `settings_invalid`, naming the variable or flag at fault; it never quotes a secret
 */
export function readSettings(env: Environment, flags: Partial<Settings> = {}): Settings {
  const {
    jwt = readJwtSettings(env),
    openFga = readOpenFgaSettings(env),
    secretsKeys = readSecretsKeys(env, 'CARILLON_SECRETS_KEY'),
    variables = moduleVariables(env),
    folder = process.cwd(),
    ...flat
  } = flags
  return { ...readFlatSettings(env, flat), jwt, openFga, secretsKeys, variables, folder }
}

/** Those that begin with `CARILLON_` and are not Carillon's own: its keys do not belong here. */
function moduleVariables(env: Environment): Environment {
  return Object.fromEntries(
    Object.entries(env).filter(([variable]) => {
      const [prefix, word = ''] = variable.split('_')
      return prefix === 'CARILLON' && !RESERVED_WORDS.has(word.toLowerCase())
    }),
  )
}

function readFlatSettings(env: Environment, flags: Partial<FlatSettings>): FlatSettings {
  const names = Object.keys(SOURCES) as (keyof FlatSettings)[]
  const raw = names.map((name) => {
    const { variable, otherwise } = SOURCES[name]
    // A flag may be null, which wins over the variable too.
    return [name, flags[name] === undefined ? (variableText(env, variable) ?? otherwise) : flags[name]]
  })
  const result = settingsSchema.safeParse(Object.fromEntries(raw))
  if (result.success) return result.data
  const { path, message } = result.error.issues[0] ?? { path: [], message: 'is wrong' }
  const name = names.find((known) => known === path[0]) ?? 'host'
  const { variable, flag = variable } = SOURCES[name]
  const label = flags[name] === undefined ? variable : flag
  throw new OperatorError('settings_invalid', `${label}: ${message}`)
}

export function isAdminKey(text: string): boolean {
  return text.length >= ADMIN_KEY_MIN_LENGTH && isVisibleAscii(text)
}

/** Names the rules that a key breaks, without quoting it. */
function adminKeyFault(text: string): string {
  const faults = [
    ...(text.length < ADMIN_KEY_MIN_LENGTH ? [`only ${text.length} characters`] : []),
    ...(isVisibleAscii(text) ? [] : ['a character that is not visible ASCII']),
  ]
  return faults.join(', and ')
}

/**
 * Reads the keys of secrets from a variable. Null if the variable is unset.
 * @throws OperatorError `settings_invalid`; it never quotes a key
 */
function readSecretsKeys(env: Environment, variable: string): readonly Buffer[] | null {
  const text = variableText(env, variable)
  if (text === undefined) return null
  const texts = listOf(text) ?? []
  const keys = texts.map(parseSecretsKey).filter((key) => key !== undefined)
  if (texts.length > 0 && keys.length === texts.length) return keys
  const expected = `comma-separated keys of ${SECRETS_KEY_BYTES} bytes each in base64`
  throw new OperatorError('settings_invalid', `${variable}: expected ${expected}, got something else`)
}

/** Returns undefined for anything but 32 bytes in base64, of either alphabet. */
export function parseSecretsKey(text: string): Buffer | undefined {
  if (!/^[\w+/-]+={0,2}$/.test(text)) return undefined
  const key = Buffer.from(text, 'base64')
  return key.length === SECRETS_KEY_BYTES ? key : undefined
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

function wholeNumber(
  expected: string,
  { min, max }: { readonly min: number; readonly max: number },
): z.ZodType<number> {
  return expecting(expected, (text) => {
    const value = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN
    return value >= min && value <= max ? value : undefined
  })
}

/** The text `none` means unlimited, and so does null in the `flags` of `readSettings`. */
function quota({ max }: { readonly max: number }): z.ZodType<number | null> {
  return expecting<number | null>(`a whole number of schedules from 1 to ${max}, or none`, (text) => {
    if (text === 'none') return null
    return /^[1-9]\d{0,6}$/.test(text) && Number(text) <= max ? Number(text) : undefined
  }).nullable()
}

/** Describes a database URL by its scheme alone, because the rest may hold a password. */
function schemeOf(text: string): string {
  const scheme = /^(?<scheme>[a-z][a-z\d+.-]{0,20}):\/\//i.exec(text)?.groups?.['scheme']
  return scheme === undefined ? 'something that is no URL' : `a ${scheme}:// URL that cannot be read`
}

function readPatterns(texts: readonly string[], context: z.RefinementCtx): readonly string[] {
  const patterns = texts.map((text) => text.trim()).filter((text) => text !== '')
  try {
    // A misspelt pattern fails the start and not the first schedule.
    parseAllowedHosts(patterns)
    return patterns
  } catch (error) {
    context.addIssue(messageOf(error))
    return z.NEVER
  }
}
