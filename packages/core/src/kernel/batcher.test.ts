import { expect, test } from 'vitest'

import { Batcher } from './batcher.ts'

/** A batcher whose writes last until the test ends them. */
function setUp(
  options: {
    writers?: number
    batchMax?: number
    claim?: (item: number) => boolean
    pause?: (written: number) => Promise<void>
  } = {},
) {
  const written: number[][] = []
  const ends: (() => void)[] = []
  const idle: number[] = []
  const failures: unknown[] = []
  const batcher = new Batcher<number>({
    batchMax: 3,
    ...options,
    write: (batch) => {
      written.push([...batch])
      return new Promise((resolve) => ends.push(resolve))
    },
    onIdle: () => idle.push(written.length),
    onRejection: (error) => failures.push(error),
  })
  const endWrite = async (): Promise<void> => {
    ends.shift()?.()
    await settle()
  }
  return { batcher, written, idle, failures, endWrite }
}

/** Lets all promises settle that can. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 10; turn += 1) await Promise.resolve()
}

test('items that are added together are written in one batch', async () => {
  const { batcher, written } = setUp()

  batcher.add(1)
  batcher.add(2)
  await settle()

  expect(written).toEqual([[1, 2]])
})

test('items that are added during a write wait for it and share the next batch, up to its limit', async () => {
  const { batcher, written, endWrite } = setUp()
  batcher.add(1)
  await settle()

  for (const item of [2, 3, 4, 5]) batcher.add(item)
  await settle()
  expect(written).toEqual([[1]])

  await endWrite()
  expect(written).toEqual([[1], [2, 3, 4]])
  await endWrite()
  expect(written).toEqual([[1], [2, 3, 4], [5]])
})

test('each writer writes one batch at a time, concurrently with the other writers', async () => {
  const { batcher, written } = setUp({ writers: 2 })
  batcher.add(1)
  await settle()
  batcher.add(2)
  await settle()
  batcher.add(3)
  await settle()

  expect(written).toEqual([[1], [2]])
  expect(batcher.waiting).toBe(1)
})

test('an item that cannot be claimed waits until the batcher is woken, and does not hold up other items', async () => {
  const blocked = new Set([1])
  const { batcher, written, endWrite } = setUp({ claim: (item) => !blocked.has(item) })
  batcher.add(1)
  batcher.add(2)
  await settle()
  await endWrite()
  expect(written).toEqual([[2]])

  blocked.clear()
  batcher.wake()
  await settle()

  expect(written).toEqual([[2], [1]])
})

test('the batcher calls onIdle once everything is written, and not earlier', async () => {
  const { batcher, idle, endWrite } = setUp({ batchMax: 1 })
  batcher.add(1)
  batcher.add(2)
  await settle()
  await endWrite()
  expect(idle).toEqual([])

  await endWrite()

  expect(idle).toEqual([2])
})

test('a write that rejects is reported, and the next item is written', async () => {
  const failures: unknown[] = []
  const written: number[] = []
  const batcher = new Batcher<number>({
    batchMax: 1,
    write: async ([item = 0]) => {
      written.push(item)
      if (item === 1) throw new Error('refused')
    },
    onRejection: (error) => failures.push(error),
  })
  batcher.add(1)
  await settle()

  batcher.add(2)
  await settle()

  expect(written).toEqual([1, 2])
  expect(failures).toEqual([new Error('refused')])
})

test('a writer pauses after each batch, depending on its size, before it takes the next one', async () => {
  const pauses: number[] = []
  let endPause = (): void => undefined
  const pause = (size: number): Promise<void> => {
    pauses.push(size)
    return new Promise((resolve) => (endPause = resolve))
  }
  const { batcher, written, endWrite } = setUp({ batchMax: 2, pause })
  for (const item of [1, 2, 3]) batcher.add(item)
  await settle()

  await endWrite()
  expect({ written, pauses }).toEqual({ written: [[1, 2]], pauses: [2] })

  endPause()
  await settle()
  expect(written).toEqual([[1, 2], [3]])
})

test('a batcher with two writers calls onIdle once both have ended', async () => {
  const { batcher, idle, endWrite } = setUp({ writers: 2 })
  batcher.add(1)
  await settle()
  batcher.add(2)
  await settle()

  await endWrite()
  expect(idle).toEqual([])
  await endWrite()
  expect(idle).toEqual([2])
})
