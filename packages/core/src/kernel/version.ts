import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8')) as {
  version: string
}

/** The version of Carillon. */
export const VERSION = version

/** The version of this process' time zone data, such as `2026c`; null if unknown. */
export const TZDATA_VERSION = process.versions['tz'] ?? null
