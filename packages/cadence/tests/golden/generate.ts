import { writeFileSync } from 'node:fs'

import { zone } from '../oracle/zone.ts'
import { GOLDEN_ZONES } from '../oracle/zones.ts'
import { fileName, printZone } from './vector-text.ts'

/**
 * Writes the golden files from the oracle, never from the library: `node packages/cadence/tests/golden/generate.ts`.
 * Run it when a new tzdata release changes a zone, and review the diff.
 */
for (const timezone of GOLDEN_ZONES) {
  const text = printZone(timezone, process.versions['tz'] ?? 'unknown', (pattern, { policy }, from, to) =>
    pattern.slots(zone(timezone), policy, from, to),
  )
  writeFileSync(new URL(fileName(timezone), import.meta.url), text)
}
