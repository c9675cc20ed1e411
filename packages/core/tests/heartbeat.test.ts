import { expect, test } from 'vitest'

import type { EventMap } from '../src/events.ts'
import { emptiedPipelines } from './emptied-pipeline.ts'
import { HEARTBEAT_MS, type Pipeline } from './pipeline.ts'

const pipelineAt = emptiedPipelines()

/** Resolves once the only worker has said that it lives, at this instant. */
async function whenBeaten({ clock, database }: Pipeline): Promise<void> {
  for (;;) {
    const { rows } = await database.pool.query('select from carillon.workers where heartbeat_at = $1', [
      clock.databaseNow(),
    ])
    if (rows.length > 0) return
  }
}

test('a heartbeat that fails once is tried again in time: one broken connection costs no lease (I12)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, database } = pipeline
  const { heartbeat, lease, events } = pipeline.worker()
  const lost: string[] = []
  events.on('lease.lost', ({ workerId }) => lost.push(workerId))
  const failed = new Promise<EventMap['service.failed']>((resolve) => events.on('service.failed', resolve))
  heartbeat.start()
  await whenBeaten(pipeline)
  const { rows: before } = await database.pool.query('select id from carillon.workers')

  await database.pool.query('alter table carillon.workers rename to hidden')
  clock.advance(HEARTBEAT_MS)
  expect(await failed).toMatchObject({ service: 'heartbeat' })
  await database.pool.query('alter table carillon.hidden rename to workers')
  clock.advance(HEARTBEAT_MS / 5)
  await whenBeaten(pipeline)
  await heartbeat.stop()
  clock.advance(HEARTBEAT_MS)

  expect((await database.pool.query('select id from carillon.workers')).rows).toEqual(before)
  expect(lease.workerId).toBe((before as { id: string }[])[0]?.id)
  expect(lost).toEqual([])
})
