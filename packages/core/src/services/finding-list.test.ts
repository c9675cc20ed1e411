import { expect, test } from 'vitest'

import { FindingList } from './finding-list.ts'

test('all findings are counted, and the first ones kept', () => {
  const list = new FindingList(2)
  const finding = { scheduleId: null, scheduledFor: null, detail: 'x' }
  list.add({ ...finding, kind: 'slot_lost', isRepaired: true })
  list.add({ ...finding, kind: 'count_wrong', isRepaired: false })
  list.add({ ...finding, kind: 'slot_lost', isRepaired: true })

  expect(list.total).toBe(3)
  expect(list.repaired).toBe(2)
  expect(list.counts).toMatchObject({ slot_lost: 2, count_wrong: 1, slot_unknown: 0 })
  expect(list.kept.map(({ kind }) => kind)).toEqual(['slot_lost', 'count_wrong'])
})
