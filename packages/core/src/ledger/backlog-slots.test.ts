import { expect, test } from 'vitest'

import { linesOf, stepsOf, type BacklogCadences } from './backlog-slots.ts'

const CADENCE = 'every second'

/** A cadence with a slot every second. The search for a slot after `last` fails. */
function everySecond({ last = Infinity }: { last?: number } = {}): BacklogCadences {
  return {
    dueSlots: (_cadence, { first, until, limit }) => {
      const due: number[] = []
      let next = first
      while (next <= until && due.length < limit) {
        due.push(next)
        if (next >= last) throw new Error('the next slot was not found')
        next += 1000
      }
      return { due, next }
    },
    firstFrom: (_cadence, instant) => Math.ceil(instant / 1000) * 1000,
  }
}

function steps(
  backlog: { nextSlotAt: number; until: number },
  options: { limit?: number; ledgerFrom?: number; cadence?: string | null; cadences?: BacklogCadences } = {},
) {
  const all = [
    ...stepsOf(backlog, { cadences: everySecond(), cadence: CADENCE, ledgerFrom: 0, limit: 1000, ...options }),
  ]
  return { slots: all.flatMap(({ due }) => due), sizes: all.map(({ due }) => due.length), next: all.at(-1)?.next }
}

test('slots are computed a hundred at a time, up to the last due one', () => {
  const { slots, sizes, next } = steps({ nextSlotAt: 1000, until: 250_500 })

  expect(slots).toEqual(Array.from({ length: 250 }, (_, index) => (index + 1) * 1000))
  expect(sizes).toEqual([100, 100, 50])
  expect(next).toBeNull()
})

test.each([
  { limit: 250, sizes: [100, 100, 50], next: 251_000 },
  { limit: 1, sizes: [1], next: 2000 },
])('no more than $limit slots are computed, and the next one is returned', ({ limit, sizes, next }) => {
  expect(steps({ nextSlotAt: 1000, until: 900_000 }, { limit })).toMatchObject({ sizes, next })
})

test('without room for a line no slot is computed, so the backlog does not change', () => {
  expect(steps({ nextSlotAt: 1000, until: 900_000 }, { limit: 0 })).toEqual({ slots: [], sizes: [], next: undefined })
})

test('slots that are older than the retention are skipped', () => {
  const backlog = { nextSlotAt: 1000, until: 9000 }

  expect(steps(backlog, { ledgerFrom: 6500 })).toMatchObject({ slots: [7000, 8000, 9000], next: null })
  expect(steps(backlog, { ledgerFrom: 9500 })).toMatchObject({ slots: [], next: null })
})

test('if the cadence cannot be read, only the stored slot gets its line', () => {
  const unreadable = {
    dueSlots: () => {
      throw new Error('the cadence can no longer be read')
    },
    firstFrom: () => {
      throw new Error('the cadence can no longer be read')
    },
  }
  const backlog = { nextSlotAt: 1000, until: 9000 }

  expect(steps(backlog, { cadences: unreadable })).toMatchObject({ slots: [1000], next: null })
  expect(steps(backlog, { cadences: unreadable, ledgerFrom: 5000 })).toMatchObject({ slots: [1000], next: null })
  expect(steps(backlog, { cadence: null })).toMatchObject({ slots: [1000], next: null })
})

test('if the search for a later slot fails, every slot before it still gets its line (I6)', () => {
  const { slots, next } = steps({ nextSlotAt: 1000, until: 900_000 }, { cadences: everySecond({ last: 173_000 }) })

  expect(slots).toEqual(Array.from({ length: 173 }, (_, index) => (index + 1) * 1000))
  expect(next).toBeNull()
})

test('each line has the reason of the backlog, except that an excluded slot has the reason excluded', () => {
  const backlog = {
    scheduleId: 's',
    revision: 3,
    tenantId: 'acme',
    projectId: 'web',
    nextSlotAt: 1000,
    until: 3000,
    reason: 'paused',
    excludedSlots: [2000],
  } as const

  const lines = linesOf(backlog, [1000, 2000, 3000], 4000)

  const ofAll = {
    scheduleId: 's',
    tenantId: 'acme',
    projectId: 'web',
    revision: 3,
    state: 'skipped',
    trigger: 'schedule',
  }
  expect(lines).toMatchObject([
    { ...ofAll, scheduledFor: 1000, reason: 'paused' },
    { ...ofAll, scheduledFor: 2000, reason: 'excluded' },
    { ...ofAll, scheduledFor: 3000, reason: 'paused' },
  ])
})
