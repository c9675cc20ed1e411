import { expect, test } from 'vitest'

import { Events } from '../src/events.ts'
import { Scheduler } from '../src/facade/scheduler.ts'
import { Worker } from '../src/facade/worker.ts'
import { createDb } from '../src/store/database.ts'
import { createDatabase } from './database.ts'
import { ScriptedTarget } from './scripted-target.ts'

test('an audit that is asked for is one job however often, and is done by a worker', async () => {
  await using database = await createDatabase()
  const target = new ScriptedTarget()
  const scheduler = new Scheduler({ db: createDb(database.pool), targets: new Map([[target.kind, target]]) })
  const events = new Events()
  const audited = new Promise((resolve) => events.on('audit.finished', resolve))

  await scheduler.requestAudit()
  await scheduler.requestAudit()
  const { rows } = await database.pool.query('select task_identifier from carillon_jobs.jobs')
  await using worker = new Worker({ databaseUrl: database.url, targets: [target], events })
  await worker.start()
  await audited

  expect(rows).toEqual([{ task_identifier: 'upkeep.audit' }])
  expect(await scheduler.latestAudit()).toMatchObject({ findings: 0 })
})

test('a request is dated before a worker can see it, or its audit would be taken for an earlier one', async () => {
  await using database = await createDatabase()
  const scheduler = new Scheduler({ db: createDb(database.pool), targets: new Map() })

  const requestedAt = await scheduler.requestAudit()

  const { rows } = await database.pool.query<{ created_at: Date }>('select created_at from carillon_jobs.jobs')
  expect(rows.map(({ created_at }) => created_at.getTime())).toEqual([requestedAt])
})
