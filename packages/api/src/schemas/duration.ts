import { z } from 'zod'

import { expected } from '../expected.ts'

const SECOND_MS = 1000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
const PATTERN = /^P(?:(\d{1,4})W)?(?:(\d{1,5})D)?(?:T(?=\d)(?:(\d{1,6})H)?(?:(\d{1,7})M)?(?:(\d{1,8})S)?)?$/

/** The milliseconds of an ISO 8601 duration in weeks, days of 24 hours, hours, minutes and seconds; undefined for any other text. */
export function durationMs(text: string): number | undefined {
  const match = PATTERN.exec(text)
  if (match === null || text === 'P') return undefined
  const [weeks = 0, days = 0, hours = 0, minutes = 0, seconds = 0] = match.slice(1).map((part) => Number(part ?? 0))
  return (weeks * 7 + days) * DAY_MS + hours * HOUR_MS + minutes * MINUTE_MS + seconds * SECOND_MS
}

/** A duration within a range, both ends included. Stored as it is written. */
export function duration({ min, max }: { readonly min: string; readonly max: string }): z.ZodString {
  const shape = expected(`an ISO 8601 duration from ${min} to ${max}, such as PT1H`)
  const [least = 0, most = 0] = [durationMs(min), durationMs(max)]
  return z.string(shape).refine((text) => {
    const ms = durationMs(text)
    return ms !== undefined && ms >= least && ms <= most
  }, shape)
}
