import { expect, test } from 'vitest'

import { emptiedPipelines } from '../emptied-pipeline.ts'
import { CALLER } from '../pipeline.ts'

const pipelineAt = emptiedPipelines()

// Clocks go forward at 01:00Z on 29 March and back at 01:00Z on 25 October in Madrid; in New York at 07:00Z on 8 March and
// at 06:00Z on 1 November.
const MADRID = 'Europe/Madrid'
const NEW_YORK = 'America/New_York'

interface Case {
  readonly zone: string
  readonly rule: string
  readonly dst?: object
  readonly from: string
  readonly to: string
  readonly slots: readonly string[]
}

const GAP_OF_MADRID = { zone: MADRID, from: '2026-03-28T12:00Z', to: '2026-03-30T12:00Z' }
const FOLD_OF_MADRID = { zone: MADRID, from: '2026-10-24T12:00Z', to: '2026-10-26T12:00Z' }
const GAP_OF_NEW_YORK = { zone: NEW_YORK, from: '2026-03-07T12:00Z', to: '2026-03-09T12:00Z' }
const FOLD_OF_NEW_YORK = { zone: NEW_YORK, from: '2026-10-31T12:00Z', to: '2026-11-02T12:00Z' }
const HOURS_OF_MADRID_GAP = { zone: MADRID, from: '2026-03-29T00:10Z', to: '2026-03-29T02:10Z' }
const HOURS_OF_MADRID_FOLD = { zone: MADRID, from: '2026-10-24T23:40Z', to: '2026-10-25T02:10Z' }
const HOURS_OF_NEW_YORK_FOLD = { zone: NEW_YORK, from: '2026-11-01T04:40Z', to: '2026-11-01T07:10Z' }

const CASES: readonly Case[] = [
  // A fixed time of day runs once a day: at the end of the gap, and in the first pass of the fold.
  { ...GAP_OF_MADRID, rule: '30 2 * * *', slots: ['29T01:00', '30T00:30'] },
  { ...GAP_OF_MADRID, rule: '30 2 * * *', dst: { gap: 'shift' }, slots: ['29T01:00', '30T00:30'] },
  { ...GAP_OF_MADRID, rule: '30 2 * * *', dst: { gap: 'skip' }, slots: ['30T00:30'] },
  { ...GAP_OF_NEW_YORK, rule: '30 2 * * *', slots: ['08T07:00', '09T06:30'] },
  { ...GAP_OF_NEW_YORK, rule: '30 2 * * *', dst: { gap: 'skip' }, slots: ['09T06:30'] },
  { ...FOLD_OF_MADRID, rule: '30 2 * * *', slots: ['25T00:30', '26T01:30'] },
  { ...FOLD_OF_MADRID, rule: '30 2 * * *', dst: { fold: 'first' }, slots: ['25T00:30', '26T01:30'] },
  { ...FOLD_OF_MADRID, rule: '30 2 * * *', dst: { fold: 'second' }, slots: ['25T01:30', '26T01:30'] },
  { ...FOLD_OF_MADRID, rule: '30 2 * * *', dst: { fold: 'both' }, slots: ['25T00:30', '25T01:30', '26T01:30'] },
  { ...FOLD_OF_NEW_YORK, rule: '30 1 * * *', slots: ['01T05:30', '02T06:30'] },
  { ...FOLD_OF_NEW_YORK, rule: '30 1 * * *', dst: { fold: 'second' }, slots: ['01T06:30', '02T06:30'] },
  { ...FOLD_OF_NEW_YORK, rule: '30 1 * * *', dst: { fold: 'both' }, slots: ['01T05:30', '01T06:30', '02T06:30'] },
  // A rule that repeats within the hour follows elapsed time.
  { ...HOURS_OF_MADRID_GAP, rule: '*/30 * * * *', slots: ['29T00:30', '29T01:00', '29T01:30', '29T02:00'] },
  {
    ...HOURS_OF_MADRID_FOLD,
    rule: '*/30 * * * *',
    slots: ['25T00:00', '25T00:30', '25T01:00', '25T01:30', '25T02:00'],
  },
  {
    ...HOURS_OF_NEW_YORK_FOLD,
    rule: '*/30 * * * *',
    slots: ['01T05:00', '01T05:30', '01T06:00', '01T06:30', '01T07:00'],
  },
  // A rule that repeats, but not every hour, runs once at the end of the gap, and in both passes of the fold.
  { ...GAP_OF_MADRID, rule: '*/30 2 * * *', slots: ['29T01:00', '30T00:00', '30T00:30'] },
  {
    ...FOLD_OF_MADRID,
    rule: '*/30 2 * * *',
    slots: ['25T00:00', '25T00:30', '25T01:00', '25T01:30', '26T01:00', '26T01:30'],
  },
]

test.each(CASES.map((each) => ({ ...each, policy: JSON.stringify(each.dst ?? 'by default') })))(
  'in $zone from $from to $to the rule $rule runs at $slots: $policy',
  async ({ zone, rule, dst, from, to, slots }) => {
    const pipeline = await pipelineAt(from)
    const worker = pipeline.worker()
    const cadence = { kind: 'cron', expression: rule, timezone: zone, ...(dst === undefined ? {} : { dst }) }
    const { id } = await pipeline.create({ cadence })

    for (;;) {
      const { nextSlotAt } = await pipeline.scheduler.get(CALLER, id)
      if (nextSlotAt === null || nextSlotAt > Date.parse(to)) break
      pipeline.clock.advance(nextSlotAt - pipeline.clock.instant)
      await worker.runDue()
    }

    const ledger = await pipeline.ledger({ id })
    expect(ledger.map(({ scheduledFor }) => new Date(scheduledFor).toISOString().slice(8, 16))).toEqual(slots)
    expect(new Set(ledger.map(({ state }) => state))).toEqual(new Set(['succeeded']))
  },
)

test('the two passes of a time in the fold are two slots, each with its own key (I5)', async () => {
  const pipeline = await pipelineAt('2026-10-25T00:00Z')
  const worker = pipeline.worker()
  const cadence = { kind: 'cron', expression: '30 2 * * *', timezone: MADRID, dst: { fold: 'both' } }
  const { id } = await pipeline.create({ cadence })

  for (const instant of ['2026-10-25T00:30Z', '2026-10-25T01:30Z']) {
    pipeline.clock.advance(Date.parse(instant) - pipeline.clock.instant)
    await worker.runDue()
  }

  expect(pipeline.target.calls.map(({ idempotencyKey }) => idempotencyKey)).toEqual([
    `sched:${id}:${Date.parse('2026-10-25T00:30Z')}`,
    `sched:${id}:${Date.parse('2026-10-25T01:30Z')}`,
  ])
})
