import { setImmediate } from 'node:timers/promises'

import { expect, test } from 'vitest'

import { GrantExpiryWarnings } from '../../src/access/grant-expiry-warnings.ts'
import { Grants } from '../../src/access/grants.ts'
import { Events, type EventMap } from '../../src/kernel/events.ts'
import { emptiedPipelines } from '../emptied-pipeline.ts'
import { CALLER, DAY, type Pipeline } from '../pipeline.ts'
import { sql } from '../sql.ts'

const pipelineAt = emptiedPipelines()
const START = '2026-03-02T09:00:30Z'

function warningsOf({ workerDb: db, clock }: Pipeline) {
  const events = new Events()
  const emitted: EventMap['grant.expiring'][] = []
  events.on('grant.expiring', (event) => emitted.push(event))
  return { warnings: new GrantExpiryWarnings({ db, clock, events }, { periodMs: 1 }), emitted }
}

/** Creates a grant that expires this long after the start. */
function createGrant({ db, clock }: Pipeline, endsInMs: number) {
  const input = { scopes: ['test:dispatch:bell'], expiresAt: Date.parse(START) + endsInMs }
  return new Grants({ db, clock }).create(CALLER, input)
}

test('a grant that expires within 7 days causes one warning: an event, a line in the history of its schedules, an event log entry', async () => {
  const pipeline = await pipelineAt(START)
  const { warnings, emitted } = warningsOf(pipeline)
  const grant = await createGrant(pipeline, 8 * DAY)
  const [first, second] = [await pipeline.create({ grantId: grant.id }), await pipeline.create({ grantId: grant.id })]
  await pipeline.create({ name: 'uses its own grant' })

  expect(await warnings.runOnce()).toEqual({ warned: 0 })
  pipeline.clock.advance(DAY)
  expect(await warnings.runOnce()).toEqual({ warned: 1 })
  expect(await warnings.runOnce()).toEqual({ warned: 0 })

  const { tenantId, projectId, subject } = CALLER
  const scheduleIds = [first.id, second.id].toSorted()
  expect(emitted).toEqual([
    { tenantId, projectId, grantId: grant.id, subject, expiresAt: grant.expiresAt, scheduleIds },
  ])
  expect((await pipeline.scheduler.history(CALLER, first.id))[0]).toMatchObject({
    change: 'grant_expiring',
    actor: 'system:carillon',
    reason: '2026-03-10T09:00:30.000Z',
  })
  // A reader of the event log sees this entry once all older transactions on the server have ended.
  const { rows } = await sql<{ changes: string[] }>`
    select changes from carillon.feed_entries order by id desc limit 1`.execute(pipeline.db)
  expect(rows).toEqual([{ changes: ['grant_expiring', 'grant_expiring'] }])
})

test('the hourly check for expiring grants runs again a second after it failed', async () => {
  const pipeline = await pipelineAt(START)
  const { clock, workerDb: db, database } = pipeline
  const events = new Events()
  await createGrant(pipeline, DAY)
  await using warnings = new GrantExpiryWarnings({ db, clock, events }, { periodMs: 3_600_000 })
  const failed = new Promise((resolve) => events.on('service.failed', resolve))
  const emitted = new Promise((resolve) => events.on('grant.expiring', resolve))

  await database.pool.query('revoke select on carillon.execution_grants from carillon_worker')
  warnings.start()
  await failed
  expect(warnings.failure).toMatchObject({ failures: 1 })
  await database.pool.query('grant select on carillon.execution_grants to carillon_worker')
  while (clock.waiting === 0) await setImmediate()
  clock.advance(1000)
  await emitted
  while (clock.waiting === 0) await setImmediate()

  expect(warnings.failure).toBeUndefined()
})

test('a renewed grant causes another warning before its new expiry', async () => {
  const pipeline = await pipelineAt(START)
  const { warnings, emitted } = warningsOf(pipeline)
  const grant = await createGrant(pipeline, DAY)
  await warnings.runOnce()

  const expiresAt = Date.parse(START) + 30 * DAY
  await new Grants({ db: pipeline.db, clock: pipeline.clock }).renew(CALLER, grant.id, { expiresAt })
  expect(await warnings.runOnce()).toEqual({ warned: 0 })
  pipeline.clock.advance(23 * DAY)
  await warnings.runOnce()

  expect(emitted.map((event) => event.expiresAt)).toEqual([grant.expiresAt, expiresAt])
})

test('a grant that has expired, was revoked or never expires causes no warning', async () => {
  const pipeline = await pipelineAt(START)
  const { warnings } = warningsOf(pipeline)
  const revoked = await createGrant(pipeline, 2 * DAY)
  await new Grants({ db: pipeline.db, clock: pipeline.clock }).revoke(CALLER, revoked.id)
  await createGrant(pipeline, DAY)
  await pipeline.create()
  pipeline.clock.advance(DAY)

  expect(await warnings.runOnce()).toEqual({ warned: 0 })
})

test('several workers that check at the same time emit one warning per grant', async () => {
  const pipeline = await pipelineAt(START)
  for (let grant = 0; grant < 5; grant += 1) await createGrant(pipeline, DAY)
  const services = Array.from({ length: 4 }, () => warningsOf(pipeline))

  await Promise.all(services.map(({ warnings }) => warnings.runOnce()))

  const emitted = services.flatMap((each) => each.emitted.map(({ grantId }) => grantId))
  expect(emitted).toHaveLength(5)
  expect(new Set(emitted).size).toBe(5)
})

test('more grants than fit one batch all cause a warning', async () => {
  const pipeline = await pipelineAt(START)
  const { warnings, emitted } = warningsOf(pipeline)
  for (let grant = 0; grant < 101; grant += 1) await createGrant(pipeline, DAY)

  expect(await warnings.runOnce()).toEqual({ warned: 101 })
  expect(emitted).toHaveLength(101)
})
