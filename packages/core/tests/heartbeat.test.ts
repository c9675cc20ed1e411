import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import type { EventMap } from '../src/events.ts'
import { whenBlocked } from './blocked-statement.ts'
import { emptiedPipelines } from './emptied-pipeline.ts'
import { HEARTBEAT_MS, MINUTE, type Pipeline } from './pipeline.ts'
import { held, SUCCEEDED } from './scripted-target.ts'

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

test('a worker says what it runs on: its version, and that of its time zone rules', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')

  await pipeline.worker().heartbeat.runOnce()

  const { rows } = await pipeline.database.pool.query('select version, tzdata_version from carillon.workers')
  const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '../package.json'), 'utf8')) as object & {
    version: string
  }
  expect(rows).toEqual([{ version, tzdata_version: process.versions['tz'] }])
})

test('an answer that comes after the lease was let go of does not take it up again: its runs must be found (I12)', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:30Z')
  const { clock, database, target } = pipeline
  const [worker, other] = [pipeline.worker(), pipeline.worker('other')]
  const schedule = await pipeline.create()
  target.script = held().script
  clock.advance(MINUTE / 2)
  await worker.begin()
  await target.whenCalled(1)
  const { workerId } = worker.lease
  clock.advance(HEARTBEAT_MS)
  const client = await database.pool.connect()
  await client.query('begin')
  await client.query('select from carillon.workers for update')

  const beat = worker.heartbeat.runOnce()
  await whenBlocked(pipeline)
  clock.advance(HEARTBEAT_MS - 500)
  await client.query('commit')
  client.release()
  expect(await beat).toEqual({ extended: 0 })
  await worker.keeper.whenIdle()

  expect(worker.lease.workerId).not.toBe(workerId)
  await pipeline.pass(2 * HEARTBEAT_MS, worker)
  expect(await other.rescuer.runOnce()).toMatchObject({ rescued: 1 })
  target.script = () => SUCCEEDED
  await other.doJobs()
  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded'])
})
