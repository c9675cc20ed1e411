import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

import {
  ADMIN_KEY_FILE,
  ApiError,
  createClient,
  RETRY_AFTER_PROBLEMS,
  SERVICE_DEFAULTS,
  type Client,
  type ClientOptions,
} from '@carillon/api'

import { CliError } from '../process/cli-error.ts'
import type { Cli, Environment } from '../process/cli.ts'

const { host: HOST, port: PORT, dataDir: DATA_DIR } = SERVICE_DEFAULTS
export const URL_DEFAULT = `http://${HOST}:${PORT}`

/** The URL of the Carillon server, from the environment. */
export function serviceUrl({ CARILLON_URL: url, CARILLON_PORT: port }: Environment): string {
  return isSet(url) ? url : `http://${HOST}:${isSet(port) ? port : PORT}`
}

/** A client for the Carillon server, with the API key that this shell or folder has. */
export function connect(cli: Cli, options: Pick<ClientOptions, 'fetch' | 'signal'> = {}): Client {
  const url = serviceUrl(cli.env)
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
    throw new CliError('usage', `expected a URL such as ${URL_DEFAULT} in CARILLON_URL, got ${url}`)
  }
  return createClient(url, findKey(cli).key, { signal: cli.signal, ...options })
}

interface Key {
  readonly key: string
  /** The environment variable or file that it comes from. */
  readonly source: string
}

/**
 * Finds the API key: in CARILLON_API_KEY; in CARILLON_ADMIN_KEY, which is set in a shell that started Carillon with a chosen key;
 * or in the data directory, where Carillon writes a key if none was chosen.
 */
export function findKey({ env, cwd }: Pick<Cli, 'env' | 'cwd'>): Key {
  for (const name of ['CARILLON_API_KEY', 'CARILLON_ADMIN_KEY']) {
    const key = env[name]?.trim()
    if (isSet(key)) return { key, source: name }
  }
  const { CARILLON_DATA_DIR: dataDir } = env
  const file = join(resolve(cwd, isSet(dataDir) ? dataDir : DATA_DIR), ADMIN_KEY_FILE)
  const key = readKeyFile(file)
  if (key !== undefined) return { key, source: file }
  throw new CliError('key_missing', `expected an API key in CARILLON_API_KEY or in ${file}, got none`, {
    advice: 'start the server with `npm start`, which creates a key in its folder, or set CARILLON_API_KEY',
  })
}

function readKeyFile(file: string): string | undefined {
  try {
    const key = readFileSync(file, 'utf8').trim()
    return key === '' ? undefined : key
  } catch {
    return undefined
  }
}

function isSet(text: string | undefined): text is string {
  return text !== undefined && text !== ''
}

const TRIES_MAX = 30
const WAIT_DEFAULT_S = 1

/** Repeats a request that the server refuses only for now (rate limit, overload), after the time that its answer names. */
export async function retryWhileBusy<Result>(
  { clock, signal }: Pick<Cli, 'clock' | 'signal'>,
  request: () => Promise<Result>,
): Promise<Result> {
  for (let tries = 1; ; tries++) {
    try {
      return await request()
    } catch (error) {
      const mayRetry = error instanceof ApiError && RETRY_AFTER_PROBLEMS.includes(error.code) && tries < TRIES_MAX
      if (!mayRetry || signal.aborted) throw error
      await clock.sleep((error.retryAfterSeconds ?? WAIT_DEFAULT_S) * 1000, signal)
    }
  }
}
