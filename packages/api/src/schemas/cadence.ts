import { FOLD_POLICIES, FREQUENCIES, GAP_POLICIES } from '@carillon/cadence/words'
import { z } from 'zod'

import { component } from '../component.ts'
import { CADENCE_MAX_RUNS, INTERVAL_MAX_RUNS } from '../limits.ts'
import { wholeNumber } from './fields.ts'

const moment = z.string()
/** Read-only without zod's `.readonly()`, which would mark the field as `readOnly` in the documented schema. */
const moments: z.ZodType<readonly string[], readonly string[]> = z.array(moment)

const zoned = {
  timezone: z
    .string()
    .optional()
    .meta({ description: 'The IANA name of the time zone. The default is UTC.', examples: ['Europe/Madrid'] }),
  dst: z
    .object({
      gap: z.enum(GAP_POLICIES).optional(),
      fold: z.enum(FOLD_POLICIES).optional(),
    })
    .optional()
    .meta({ description: 'What to do with a local time that does not exist, or exists twice.' }),
}

const recurring = {
  ...zoned,
  startAt: moment
    .optional()
    .meta({ description: 'The cadence has no slot before this time: an instant, or a local time in `timezone`.' }),
  endAt: moment
    .optional()
    .meta({ description: 'The cadence has no slot after this time: an instant, or a local time in `timezone`.' }),
  maxRuns: wholeNumber(CADENCE_MAX_RUNS).optional().meta({ description: 'The cadence has at most this many slots.' }),
}

const once = component(
  'OnceCadence',
  z.object({
    kind: z.literal('once'),
    at: moment.meta({
      description:
        'An instant, or a local time. A local time needs its zone, in `timezone` or in brackets behind it: ' +
        '`2026-12-24T18:00:00[Europe/Madrid]`.',
      examples: ['2026-12-24T18:00:00Z'],
    }),
    ...zoned,
    timezone: zoned.timezone.meta({
      description: 'The IANA name of the time zone. The default is the zone in `at`; for an instant it is UTC.',
      examples: ['Europe/Madrid'],
    }),
  }),
  'A single instant.',
)

const cron = component(
  'CronCadence',
  z.object({ kind: z.literal('cron'), expression: z.string().meta({ examples: ['0 9 * * 1-5'] }), ...recurring }),
  'A cron expression of five fields, or a macro such as `@daily`.',
)

const rrule = component(
  'RRuleCadence',
  z.object({
    kind: z.literal('rrule'),
    rule: z.string().meta({ examples: ['FREQ=MONTHLY;BYDAY=1MO'] }),
    start: z
      .string()
      .optional()
      .meta({ description: 'DTSTART, as a local time in `timezone`.', examples: ['2026-01-05T09:00:00'] }),
    exdates: moments.optional(),
    rdates: moments.optional(),
    ...recurring,
  }),
  'A recurrence rule of RFC 5545.',
)

const interval = component(
  'IntervalCadence',
  z.object({
    kind: z.literal('interval'),
    every: z.union([z.string(), z.number()]).meta({
      description:
        'An ISO 8601 duration, or a number of seconds. Hours, minutes and seconds are elapsed time. A duration with years, months, ' +
        'weeks or days steps in local time, so `P1D` keeps the time of day when the clocks change, and `PT24H` does not.',
      examples: ['PT15M'],
    }),
    anchor: moment.optional().meta({
      description: 'Slots lie at whole multiples of `every` from this time: an instant, or a local time in `timezone`.',
    }),
    ...recurring,
    maxRuns: wholeNumber(INTERVAL_MAX_RUNS)
      .optional()
      .meta({
        description: `The cadence has at most this many slots; for an interval of days or longer at most ${CADENCE_MAX_RUNS.max}.`,
      }),
  }),
  'At a fixed interval.',
)

const frequency = component(
  'FrequencyCadence',
  z.object({
    kind: z.literal('frequency'),
    frequency: z.enum(FREQUENCIES),
    dayOfWeek: z.int().min(0).max(6).meta({ description: 'The day of the week: 0 is Sunday, 6 is Saturday.' }),
    timeOfDay: z.string().meta({ examples: ['09:00'] }),
    anchor: z.string().optional(),
    ...recurring,
  }),
  'On a day of the week: every week, every second week, or the first such day of a month.',
)

/** In an answer, the server has filled in every default. */
export const cadence = component(
  'Cadence',
  z.discriminatedUnion('kind', [once, cron, rrule, interval, frequency]).meta({
    discriminator: {
      propertyName: 'kind',
      mapping: {
        once: '#/components/schemas/OnceCadence',
        cron: '#/components/schemas/CronCadence',
        rrule: '#/components/schemas/RRuleCadence',
        interval: '#/components/schemas/IntervalCadence',
        frequency: '#/components/schemas/FrequencyCadence',
      },
    },
  }),
  'When a schedule is due.',
)

export type CadenceInput = z.input<typeof cadence>
