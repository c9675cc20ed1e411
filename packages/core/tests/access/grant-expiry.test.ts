import { setImmediate } from 'node:timers/promises'

import { sql } from 'kysely'
import { expect, test } from 'vitest'

import { GrantExpiryWarnings } from '../../src/access/grant-expiry-warnings.ts'
import { Grants } from '../../src/access/grants.ts'
import { Events, type EventMap } from '../../src/kernel/events.ts'
import { emptiedPipelines } from '../emptied-pipeline.ts'
import { CALLER, DAY, type Pipeline } from '../pipeline.ts'

const pipelineAt = emptiedPipelines()
const START = '2026-03-02T09:00:30Z'

function warnerOf({ workerDb: db, clock }: Pipeline) {
  const events = new Events()
  const told: EventMap['grant.expiring'][] = []
  events.on('grant.expiring', (event) => told.push(event))
  return { warner: new GrantExpiryWarnings({ db, clock, events }, { periodMs: 1 }), told }
}

/** A grant that ends so long after the start. */
function createGrant({ db, clock }: Pipeline, endsInMs: number) {
  const input = { scopes: ['test:dispatch:bell'], expiresAt: Date.parse(START) + endsInMs }
  return new Grants({ db, clock }).create(CALLER, input)
}

test('a grant that ends within 7 days is warned of once: as an event, in the history of its schedules, and in the feed', async () => {
  const pipeline = await pipelineAt(START)
  const { warner, told } = warnerOf(pipeline)
  const grant = await createGrant(pipeline, 8 * DAY)
  const [first, second] = [await pipeline.create({ grantId: grant.id }), await pipeline.create({ grantId: grant.id })]
  await pipeline.create({ name: 'by its own' })

  expect(await warner.runOnce()).toEqual({ warned: 0 })
  pipeline.clock.advance(DAY)
  expect(await warner.runOnce()).toEqual({ warned: 1 })
  expect(await warner.runOnce()).toEqual({ warned: 0 })

  const { tenantId, projectId, subject } = CALLER
  const scheduleIds = [first.id, second.id].toSorted()
  expect(told).toEqual([{ tenantId, projectId, grantId: grant.id, subject, expiresAt: grant.expiresAt, scheduleIds }])
  expect((await pipeline.scheduler.history(CALLER, first.id)).at(-1)).toMatchObject({
    change: 'grant_expiring',
    actor: 'system:carillon',
    reason: '2026-03-10T09:00:30.000Z',
  })
  // Noted for followers, who see it as soon as nothing older is under way on the server.
  const { rows } = await sql<{ changes: string[] }>`
    select changes from carillon.feed_entries order by id desc limit 1`.execute(pipeline.db)
  expect(rows).toEqual([{ changes: ['grant_expiring', 'grant_expiring'] }])
})

test('a warner that could not read the grants tries again after a second, though it usually looks once an hour', async () => {
  const pipeline = await pipelineAt(START)
  const { clock, workerDb: db, database } = pipeline
  const events = new Events()
  await createGrant(pipeline, DAY)
  await using warner = new GrantExpiryWarnings({ db, clock, events }, { periodMs: 3_600_000 })
  const failed = new Promise((resolve) => events.on('service.failed', resolve))
  const told = new Promise((resolve) => events.on('grant.expiring', resolve))

  await database.pool.query('revoke select on carillon.execution_grants from carillon_worker')
  warner.start()
  await failed
  expect(warner.failure).toMatchObject({ failures: 1 })
  await database.pool.query('grant select on carillon.execution_grants to carillon_worker')
  while (clock.waiting === 0) await setImmediate()
  clock.advance(1000)
  await told
  while (clock.waiting === 0) await setImmediate()

  expect(warner.failure).toBeUndefined()
})

test('a grant that was renewed is warned of again before its new end', async () => {
  const pipeline = await pipelineAt(START)
  const { warner, told } = warnerOf(pipeline)
  const grant = await createGrant(pipeline, DAY)
  await warner.runOnce()

  const expiresAt = Date.parse(START) + 30 * DAY
  await new Grants({ db: pipeline.db, clock: pipeline.clock }).renew(CALLER, grant.id, { expiresAt })
  expect(await warner.runOnce()).toEqual({ warned: 0 })
  pipeline.clock.advance(23 * DAY)
  await warner.runOnce()

  expect(told.map((event) => event.expiresAt)).toEqual([grant.expiresAt, expiresAt])
})

test('what has ended, was revoked or never ends is not warned of', async () => {
  const pipeline = await pipelineAt(START)
  const { warner } = warnerOf(pipeline)
  const revoked = await createGrant(pipeline, 2 * DAY)
  await new Grants({ db: pipeline.db, clock: pipeline.clock }).revoke(CALLER, revoked.id)
  await createGrant(pipeline, DAY)
  await pipeline.create()
  pipeline.clock.advance(DAY)

  expect(await warner.runOnce()).toEqual({ warned: 0 })
})

test('of several workers that look at once, one tells of each grant', async () => {
  const pipeline = await pipelineAt(START)
  for (let grant = 0; grant < 5; grant += 1) await createGrant(pipeline, DAY)
  const warners = Array.from({ length: 4 }, () => warnerOf(pipeline))

  await Promise.all(warners.map(({ warner }) => warner.runOnce()))

  const told = warners.flatMap((one) => one.told.map(({ grantId }) => grantId))
  expect(told).toHaveLength(5)
  expect(new Set(told).size).toBe(5)
})

test('more grants than are looked at together are all warned of', async () => {
  const pipeline = await pipelineAt(START)
  const { warner, told } = warnerOf(pipeline)
  for (let grant = 0; grant < 101; grant += 1) await createGrant(pipeline, DAY)

  expect(await warner.runOnce()).toEqual({ warned: 101 })
  expect(told).toHaveLength(101)
})
