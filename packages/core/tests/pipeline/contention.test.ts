import { setImmediate } from 'node:timers/promises'

import { describe, expect, test } from 'vitest'

import { createDb } from '../../src/db/database.ts'
import { createPool } from '../../src/db/pool.ts'
import { DueWatch } from '../../src/pipeline/due-watch.ts'
import type { LanePosition } from '../../src/pipeline/store/look.ts'
import { lanesOf } from '../../src/policy/lane-names.ts'
import { whileHeld } from '../blocked-statement.ts'
import { emptiedPipelines } from '../emptied-pipeline.ts'
import { CALLER, EVERY_MINUTE, MINUTE, type Pipeline } from '../pipeline.ts'

const pipelineAt = emptiedPipelines()
const START = '2026-03-02T09:00:00Z'
const NEVER = { kind: 'once', at: '2099-01-01T00:00:00Z' }
const TRANSACTIONS_MAX = 10
const NO_POSITIONS: ReadonlyMap<string, LanePosition> = new Map()

const SOURCES = [
  ['schedule', 'slot', (pipeline: Pipeline) => pipeline.create()],
  [
    'waiting run',
    'run',
    async (pipeline: Pipeline) => {
      const schedule = await pipeline.create({ cadence: NEVER })
      await pipeline.scheduler.runNow(CALLER, schedule.id)
      return schedule
    },
  ],
] as const

test.each(SOURCES)(
  'a due %s whose schedule another transaction has locked costs a worker fewer than ten transactions per second',
  async (_what, _source, createDue) => {
    const pipeline = await pipelineAt(START)
    const { clock, database } = pipeline
    const pool = createPool({ connectionString: database.url, role: 'carillon_worker', isPrepared: true })
    // The pool lends a connection once per transaction, and once per statement outside of one.
    let transactions = 0
    pool.on('acquire', () => (transactions += 1))
    const { id } = await createDue(pipeline)
    const { loop, heartbeat } = pipeline.worker('worker', 200, { db: createDb(pool) })
    clock.advance(MINUTE)
    await heartbeat.runOnce()
    const timers = clock.waiting
    const whenItSleeps = async (): Promise<void> => {
      while (clock.waiting < timers + loop.services.length) await setImmediate()
    }
    /** Advances the clock by a second, in steps that let the loop continue. Returns the number of transactions. */
    const second = async (): Promise<number> => {
      const before = transactions
      for (let passed = 0; passed < 1000; passed += 1) {
        clock.advance(1)
        await whenItSleeps()
      }
      return transactions - before
    }

    let counted: readonly number[] = []
    await whileHeld(pipeline, `select from carillon.schedules where id = '${id}' for update`, async () => {
      loop.start()
      await whenItSleeps()
      counted = [await second(), await second()]
    })
    const stopped = loop.stop()
    clock.advance(1000)
    await stopped
    await loop.whenIdle()
    await pool.end()

    // During the first second the worker may still be finding out that the lock is held.
    expect(counted[1]).toBeLessThan(TRANSACTIONS_MAX)
    expect(counted[1]).toBeGreaterThan(0)
  },
)

test.each(SOURCES)(
  'a due %s is begun within half a second after the lock of its schedule is released',
  async (_what, _source, createDue) => {
    const pipeline = await pipelineAt(START)
    const { clock, target } = pipeline
    const { id } = await createDue(pipeline)
    const { loop, heartbeat } = pipeline.worker()
    clock.advance(MINUTE)
    await heartbeat.runOnce()
    const timers = clock.waiting
    const whenItSleeps = async (): Promise<void> => {
      while (clock.waiting < timers + loop.services.length) await setImmediate()
    }

    await whileHeld(pipeline, `select from carillon.schedules where id = '${id}' for update`, async () => {
      loop.start()
      await whenItSleeps()
      for (let passed = 0; passed < 3000; passed += 5) {
        clock.advance(5)
        await whenItSleeps()
      }
    })
    expect(target.calls).toEqual([])
    for (let passed = 0; passed < 1000 && target.calls.length === 0; passed += 5) {
      clock.advance(5)
      await whenItSleeps()
    }
    const stopped = loop.stop()
    clock.advance(1000)
    await stopped
    await loop.whenIdle()

    expect(target.calls).toHaveLength(1)
  },
)

describe.each(SOURCES)('if a due %s could not be claimed', (_what, _source, createDue) => {
  async function setup() {
    const pipeline = await pipelineAt(START)
    const { clock, workerDb: db } = pipeline
    await createDue(pipeline)
    clock.advance(MINUTE)
    const watch = new DueWatch({ db, clock, lanes: lanesOf(['test']) })
    const [due] = (await watch.findDue()).lanes
    if (due === undefined) throw new Error('nothing is due')
    return { pipeline, clock, watch, due }
  }

  test('its lane is skipped for longer each time, from five milliseconds to half a second', async () => {
    const { clock, watch, due } = await setup()

    const pauses: number[] = []
    for (let claims = 0; claims < 12; claims += 1) {
      watch.claimed([due], NO_POSITIONS, watch.generation)
      expect(await watch.findDue()).toEqual({ lanes: [], slotAt: null })
      pauses.push(watch.sleepMs)
      clock.advance(watch.sleepMs)
      expect((await watch.findDue()).lanes).toEqual([due])
    }

    expect(pauses[0]).toBe(5)
    expect(pauses.slice(0, 6)).toEqual(pauses.slice(0, 6).toSorted((a, b) => a - b))
    expect(Math.max(...pauses)).toBeLessThanOrEqual(500)
    expect(Math.min(...pauses.slice(8))).toBeGreaterThanOrEqual(250)
  })

  test('a notification that names its lane ends the pause, and the next one is short again', async () => {
    const { watch, due, clock } = await setup()
    for (let claims = 0; claims < 8; claims += 1) {
      watch.claimed([due], NO_POSITIONS, watch.generation)
      await watch.findDue()
      clock.advance(watch.sleepMs)
      await watch.findDue()
    }
    watch.claimed([due], NO_POSITIONS, watch.generation)

    expect(watch.reset('test.no-such-lane')).toBe(false)
    expect((await watch.findDue()).lanes).toEqual([])
    expect(watch.reset(due.lane)).toBe(true)
    expect((await watch.findDue()).lanes).toEqual([due])
    watch.claimed([due], NO_POSITIONS, watch.generation)
    await watch.findDue()

    expect(watch.sleepMs).toBeLessThanOrEqual(10)
  })

  test('a notification that arrives during a claim of the lane takes effect after that claim', async () => {
    const { watch, due } = await setup()
    const { generation } = watch
    const last = new Map([[due.lane, { dueAt: due.dueAt + MINUTE, scheduleId: due.lane, slot: due.dueAt + MINUTE }]])

    watch.reset(due.lane)
    watch.claimed([due], last, generation)
    watch.claimed([due], NO_POSITIONS, generation)

    expect((await watch.findDue()).lanes).toEqual([due])
  })

  test('a slot or run that comes due later in the same lane is seen at once', async () => {
    const { pipeline, watch, due, clock } = await setup()
    for (let claims = 0; claims < 8; claims += 1) {
      watch.claimed([due], NO_POSITIONS, watch.generation)
      await watch.findDue()
      clock.advance(watch.sleepMs)
      await watch.findDue()
    }
    watch.claimed([due], NO_POSITIONS, watch.generation)
    expect((await watch.findDue()).lanes).toEqual([])

    const later = await pipeline.create({ cadence: NEVER })
    await pipeline.scheduler.runNow(CALLER, later.id)
    const slotAt = clock.instant + 1
    await pipeline.create({ cadence: { kind: 'once', at: new Date(slotAt).toISOString() } })
    clock.advance(1)

    const seen = new Map((await watch.findDue()).lanes.map((lane) => [lane.source, lane]))
    expect(seen.get('run')).toMatchObject({ lane: due.lane, dueAt: slotAt - 1 })
    expect(seen.get('slot')).toMatchObject({ lane: due.lane, dueAt: slotAt })
  })

  test('other lanes are not affected', async () => {
    const { pipeline, watch, due, clock } = await setup()
    watch.claimed([due], NO_POSITIONS, watch.generation)

    const neighbour = { ...CALLER, tenantId: 'neighbour' }
    const at = new Date(clock.instant + 1).toISOString()
    await pipeline.scheduler.create(neighbour, { ...EVERY_MINUTE, cadence: { kind: 'once', at } })
    clock.advance(1)

    const { lanes } = await watch.findDue()
    expect(lanes).toMatchObject([{ source: 'slot', dueAt: clock.instant }])
    expect(lanes[0]?.lane).not.toBe(due.lane)
  })
})
