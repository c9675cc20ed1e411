import { z } from 'zod'

import { expected } from '../expected.ts'

const INSTANT = expected('an instant from 1970 to 9999 such as 2026-12-24T18:00:00Z')
/** The years that cadences know. */
const LAST_INSTANT = Date.parse('9999-12-31T23:59:59.999Z')

/** In answers: UTC, to the millisecond. */
export const instant = z.iso.datetime({ precision: 3 }).meta({ description: 'UTC, to the millisecond.' })

/** In requests: any offset from UTC. */
export const instantInput = z.iso.datetime({ offset: true, ...INSTANT }).refine(isKnown, INSTANT)

function isKnown(text: string): boolean {
  const epochMs = Date.parse(text)
  return epochMs >= 0 && epochMs <= LAST_INSTANT
}
