import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '../package.json'), 'utf8')) as {
  version: string
}

/** Of this code. */
export const VERSION = version

/** Of the rules of time zones that this process knows, such as `2026c`; null if it does not say. */
export const TZDATA_VERSION = process.versions['tz'] ?? null
