import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

import { createClient, type Client, type ClientOptions } from '@carillon/api'

import { CliError } from './cli-error.ts'
import type { Cli, Environment } from './cli.ts'

const PORT_DEFAULT = '7400'
export const DATA_DIR_DEFAULT = '.carillon'

/** Where the service is looked for. */
export function serviceUrl({ CARILLON_URL: url, CARILLON_PORT: port }: Environment): string {
  return isSet(url) ? url : `http://127.0.0.1:${isSet(port) ? port : PORT_DEFAULT}`
}

/** Asks the service, with the key that this shell or this folder has. */
export function connect(cli: Cli, options: Pick<ClientOptions, 'fetch' | 'signal'> = {}): Client {
  const url = serviceUrl(cli.env)
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
    throw new CliError('usage', `expected a URL such as http://127.0.0.1:7400 in CARILLON_URL, got ${url}`)
  }
  return createClient(url, findKey(cli).key, { signal: cli.signal, ...options })
}

interface Key {
  readonly key: string
  /** Where it was found. */
  readonly source: string
}

/** Who starts the service with a key of their own has it in CARILLON_ADMIN_KEY; otherwise the service wrote one. */
export function findKey({ env, cwd }: Pick<Cli, 'env' | 'cwd'>): Key {
  for (const name of ['CARILLON_API_KEY', 'CARILLON_ADMIN_KEY']) {
    const key = env[name]?.trim()
    if (isSet(key)) return { key, source: name }
  }
  const { CARILLON_DATA_DIR: dataDir } = env
  const file = join(resolve(cwd, isSet(dataDir) ? dataDir : DATA_DIR_DEFAULT), 'admin.key')
  const key = readKeyFile(file)
  if (key !== undefined) return { key, source: file }
  throw new CliError('key_missing', `no API key: CARILLON_API_KEY is not set, and there is none in ${file}`, {
    advice: 'start the service with `npm start`, which makes one in its folder, or set CARILLON_API_KEY',
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
