import { expect, test } from 'vitest'

import { emptiedPipelines } from '../emptied-pipeline.ts'
import { CALLER, MINUTE } from '../pipeline.ts'
import { sql } from '../sql.ts'
import { TestAuditor } from '../test-auditor.ts'

const pipelineAt = emptiedPipelines()

test('an audit names the schedule of a deleted attempt, of a success rewritten to skipped, and of a deleted revision', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, db, scheduler } = pipeline
  const worker = pipeline.worker()
  await pipeline.create({ name: 'sound' })
  const attemptless = await pipeline.create({ name: 'attempt deleted' })
  const rewritten = await pipeline.create({ name: 'success rewritten' })
  const revisionless = await pipeline.create({ name: 'revision deleted' })
  clock.advance(MINUTE)
  await worker.runDue()
  await scheduler.edit(CALLER, revisionless.id, { name: 'revision deleted, and edited' }, { revision: 1 })

  await sql`delete from carillon.attempts where schedule_id = ${attemptless.id}`.execute(db)
  await sql`update carillon.runs set state = 'skipped', reason = 'missed' where schedule_id = ${rewritten.id}`.execute(
    db,
  )
  await sql`delete from carillon.schedule_revisions where schedule_id = ${revisionless.id} and revision = 1`.execute(db)
  await new TestAuditor({ db: pipeline.workerDb, clock, events: pipeline.events }).audit()

  const found = new Set((await scheduler.findings(CALLER)).map(({ scheduleId }) => scheduleId))
  expect(found).toEqual(new Set([attemptless.id, rewritten.id, revisionless.id]))
})
