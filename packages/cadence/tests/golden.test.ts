import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

import { describe, expect, test } from 'vitest'

import type { Report } from './golden/check.ts'
import { PATTERNS } from './golden/patterns.ts'
import { fileName } from './golden/vector-text.ts'
import { GOLDEN_ZONES } from './oracle/zones.ts'

const CHECK = fileURLToPath(new URL('golden/check.ts', import.meta.url))

describe('the golden vectors', { timeout: 60_000 }, () => {
  test.concurrent.each([
    { TZ: 'UTC', noonInUtc: '2027-01-15T12:00:00.000Z' },
    { TZ: 'America/New_York', noonInUtc: '2027-01-15T17:00:00.000Z' },
    { TZ: 'Australia/Lord_Howe', noonInUtc: '2027-01-15T01:00:00.000Z' },
    { TZ: 'Asia/Kathmandu', noonInUtc: '2027-01-15T06:15:00.000Z' },
    { TZ: 'Pacific/Apia', noonInUtc: '2027-01-14T23:00:00.000Z' },
  ])('hold in a process whose TZ is $TZ', async ({ TZ, noonInUtc }) => {
    const report = await runIn(TZ)

    expect(report.noonInUtc).toBe(noonInUtc)
    expect(report.lines).toBeGreaterThan(GOLDEN_ZONES.length * PATTERNS.length * 32)
    expect(report.mismatches, explain(report)).toEqual([])
  })

  test.each(GOLDEN_ZONES)('cover every year from 2020 to 2035 in %s', (zone) => {
    const text = readFileSync(new URL(`golden/${fileName(zone)}`, import.meta.url), 'utf8')
    const years = new Set([...text.matchAll(/^(20[23]\d)-/gm)].map(([, year]) => year))

    expect(years.size).toBe(16)
    expect(text.match(/^\[/gm)).toHaveLength(PATTERNS.length)
  })
})

async function runIn(TZ: string): Promise<Report> {
  const { stdout } = await promisify(execFile)(process.execPath, [CHECK], {
    env: { ...process.env, TZ, NODE_OPTIONS: '' },
    maxBuffer: 100_000_000,
  })
  return JSON.parse(stdout) as Report
}

function explain({ tzdata, tzdataOfVectors, mismatches }: Report): string {
  const why =
    tzdata === tzdataOfVectors
      ? `tzdata is the same (${tzdata}): the library has changed its mind`
      : `the vectors are of tzdata ${tzdataOfVectors}, this runtime has ${tzdata}: a law may have changed, see generate.ts`
  return `${mismatches.length} lines differ, and ${why}`
}
