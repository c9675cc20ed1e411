import { readFileSync } from 'node:fs'

import { cadenceOf, type Cadence } from '../cadence-of.ts'
import { GOLDEN_ZONES } from '../oracle/zones.ts'
import type { Pattern } from './patterns.ts'
import { fileName, printZone, readTzdata, type Variant } from './vector-text.ts'

export interface Report {
  readonly timezoneOfProcess: string
  /** Noon in UTC, as local text. It proves that the process runs in the zone that the test set. */
  readonly noonInUtc: string
  readonly tzdata: string
  readonly tzdataOfVectors: string
  readonly lines: number
  readonly mismatches: readonly { zone: string; expected: string; found: string }[]
}

/** Asks the library for every vector and compares line by line. */
function check(): Report {
  const mismatches: { zone: string; expected: string; found: string }[] = []
  let lines = 0
  let tzdataOfVectors = 'unknown'
  for (const zone of GOLDEN_ZONES) {
    const expected = readFileSync(new URL(fileName(zone), import.meta.url), 'utf8')
    tzdataOfVectors = readTzdata(expected)
    const found = printZone(zone, tzdataOfVectors, slotsIn(zone)).split('\n')
    for (const [index, line] of expected.split('\n').entries()) {
      lines += 1
      if (line !== found[index]) mismatches.push({ zone, expected: line, found: found[index] ?? '' })
    }
    if (found.length !== expected.split('\n').length) {
      mismatches.push({ zone, expected: 'as many lines', found: `${found.length}` })
    }
  }
  return {
    timezoneOfProcess: new Intl.DateTimeFormat().resolvedOptions().timeZone,
    noonInUtc: new Date(2027, 0, 15, 12).toISOString(),
    tzdata: process.versions['tz'] ?? 'unknown',
    tzdataOfVectors,
    lines,
    mismatches,
  }
}

function slotsIn(timezone: string) {
  const cadences = new Map<string, Cadence>()
  return ({ input }: Pattern, { dst }: Variant, from: number, to: number): number[] => {
    const key = JSON.stringify([input, dst])
    let cadence = cadences.get(key)
    if (cadence === undefined) {
      cadence = cadenceOf({ ...input, timezone, ...(isEmpty(dst) ? {} : { dst }) })
      cadences.set(key, cadence)
    }
    return cadence.slots(from, { to, limit: 1_000 })
  }
}

function isEmpty(dst: object): boolean {
  return Object.keys(dst).length === 0
}

process.stdout.write(JSON.stringify(check()))
