import { setImmediate } from 'node:timers/promises'

import { afterAll, beforeAll, expect, test } from 'vitest'

import { createDb, type Db } from '../../src/db/database.ts'
import { dropPartitions } from '../../src/db/months.ts'
import { createPool } from '../../src/db/pool.ts'
import type { TargetContext } from '../../src/ports/target.ts'
import { whileHeld } from '../blocked-statement.ts'
import { emptiedPipelines } from '../emptied-pipeline.ts'
import { CALLER, MINUTE, type Pipeline, type TestWorker } from '../pipeline.ts'
import { watchedDb } from '../query-plan.ts'
import { held, heldEach, SUCCEEDED } from '../scripted-target.ts'
import { sql } from '../sql.ts'
import { transcriptOf, whenStored } from '../transcript-lines.ts'

const pipelineAt = emptiedPipelines()
const START = '2026-03-02T09:00:30Z'
const FLUSH_MS = 250
const LIMIT_MS = 2000

/** A database at an address where nothing listens. */
let away: Db
beforeAll(() => {
  away = createDb(createPool({ connectionString: 'postgres://127.0.0.1:1/none', role: 'carillon_worker' }))
})
afterAll(() => away.close())

/** Starts a run whose target answers when the test says so. */
async function startRun(pipeline: Pipeline, worker: TestWorker) {
  const { script, answer } = held()
  pipeline.target.script = script
  await pipeline.create()
  pipeline.clock.advance(MINUTE / 2)
  await worker.startDue()
  const [context] = pipeline.target.contexts
  if (context === undefined) throw new Error('expected a call of the target')
  return { context, answer }
}

/** Starts two runs. The lines of the first one will meet trouble. */
async function startTwo(pipeline: Pipeline, worker: TestWorker) {
  const { script, answers } = heldEach()
  pipeline.target.script = script
  await pipeline.create()
  await pipeline.create()
  pipeline.clock.advance(MINUTE / 2)
  await worker.startDue()
  const [troubled, other] = pipeline.target.contexts
  if (troubled === undefined || other === undefined) throw new Error('expected two calls of the target')
  return { troubled, other, answers }
}

/** The messages of failures of the part that writes transcripts. */
function failuresOf({ events }: TestWorker): string[] {
  const messages: string[] = []
  events.on('service.failed', ({ service, error }) => {
    if (service === 'transcripts') messages.push((error as Error).message)
  })
  return messages
}

/** Makes Postgres refuse lines with this text. */
async function refuseLines({ db }: Pipeline, code: string): Promise<void> {
  await sql`
    create function carillon.refuse() returns trigger language plpgsql as $$
    begin
      if new.entry ->> 'text' = 'troubled' then raise exception 'refused' using errcode = ${sql.lit(code)}; end if;
      return new;
    end $$`.execute(db)
  await sql`
    create trigger refuse before insert on carillon.transcripts for each row execute function carillon.refuse()`.execute(
    db,
  )
}

async function acceptLines({ db }: Pipeline): Promise<void> {
  await sql`drop function carillon.refuse cascade`.execute(db)
}

test('a settlement waits at most two seconds for lines that cannot be written, and the failure says how many were dropped', async () => {
  const pipeline = await pipelineAt(START)
  const worker = pipeline.worker('worker', 200, { transcripts: { db: away } })
  const failures = failuresOf(worker)
  const { context, answer } = await startRun(pipeline, worker)
  context.record({ kind: 'text', text: 'one' })
  context.record({ kind: 'text', text: 'two' })

  answer(SUCCEEDED)
  while (failures.length === 0) await setImmediate()
  pipeline.clock.advance(LIMIT_MS - 1)
  await setImmediate()
  expect(worker.loop.inFlight).toBe(1)
  pipeline.clock.advance(1)
  await worker.loop.whenIdle()

  expect(await pipeline.scheduler.getRun(CALLER, context.runId)).toMatchObject({ state: 'succeeded' })
  expect(failures).toContain(`dropped 2 lines of the transcript of run ${context.runId}: not written within 2 seconds`)
  expect(worker.transcripts.failure).toMatchObject({ failures: failures.length })
})

test('a line whose insert was committed and whose answer was lost is stored once', async () => {
  const pipeline = await pipelineAt(START)
  const pool = createPool({ connectionString: pipeline.database.url, role: 'carillon_worker' })
  let lost = 0
  const db = watchedDb(pool, ({ text }) => {
    if (text.includes('insert into transcripts') && lost++ < 2) throw new Error('the connection broke')
  })
  const worker = pipeline.worker('worker', 200, { transcripts: { db } })
  const failures = failuresOf(worker)
  const { context, answer } = await startRun(pipeline, worker)
  context.record({ kind: 'text', text: 'once' })

  answer(SUCCEEDED)
  for (const pauseMs of [250, 500]) {
    const before = failures.length
    while (failures.length === before) await setImmediate()
    pipeline.clock.advance(pauseMs)
  }
  await worker.loop.whenIdle()
  await db.close()

  expect(lost).toBe(3)
  expect(await transcriptOf(pipeline, context)).toEqual(['1 text once'])
})

test('while another transaction holds the row of a run, the lines of other runs are written, and those of the run later', async () => {
  const pipeline = await pipelineAt(START)
  const worker = pipeline.worker()
  const { troubled, other, answers } = await startTwo(pipeline, worker)
  for (const { record } of [troubled, other]) record({ kind: 'text', text: 'line' })

  await whileHeld(pipeline, `select from carillon.runs where id = '${troubled.runId}' for update`, async () => {
    pipeline.clock.advance(FLUSH_MS)
    await whenStored(pipeline, other, 1)
    expect(await transcriptOf(pipeline, troubled)).toEqual([])
  })
  for (const answer of answers) answer(SUCCEEDED)
  await worker.loop.whenIdle()

  expect(await transcriptOf(pipeline, troubled)).toEqual(['1 text line'])
})

test('a settlement waits for lines of a run whose row another transaction holds, and tries again four times a second', async () => {
  const pipeline = await pipelineAt(START)
  const worker = pipeline.worker()
  const { context, answer } = await startRun(pipeline, worker)
  context.record({ kind: 'text', text: 'line' })
  const tried = whenTried(pipeline)

  await whileHeld(pipeline, `select from carillon.runs where id = '${context.runId}' for update`, async () => {
    answer(SUCCEEDED)
    await tried
  })
  pipeline.clock.advance(FLUSH_MS)
  await worker.loop.whenIdle()

  expect(await transcriptOf(pipeline, context)).toEqual(['1 text line'])
})

test('if Postgres refuses the lines of one run for good, they are dropped and those of the others are written', async () => {
  const pipeline = await pipelineAt(START)
  const worker = pipeline.worker()
  const failures = failuresOf(worker)
  const { troubled, other, answers } = await startTwo(pipeline, worker)
  await refuseLines(pipeline, 'invalid_parameter_value')
  troubled.record({ kind: 'text', text: 'troubled' })
  other.record({ kind: 'text', text: 'fine' })

  for (const answer of answers) answer(SUCCEEDED)
  await worker.loop.whenIdle()
  await acceptLines(pipeline)

  expect(await transcriptOf(pipeline, troubled)).toEqual([])
  expect(await transcriptOf(pipeline, other)).toEqual(['1 text fine'])
  expect(failures).toEqual([`dropped 1 line of the transcript of run ${troubled.runId}: refused by Postgres`])
})

test('if a lock or a time limit stops the lines of one run, those of the others are written, and those of the run later', async () => {
  const pipeline = await pipelineAt(START)
  const worker = pipeline.worker()
  const { troubled, other, answers } = await startTwo(pipeline, worker)
  await refuseLines(pipeline, 'lock_not_available')
  troubled.record({ kind: 'text', text: 'troubled' })
  other.record({ kind: 'text', text: 'fine' })

  pipeline.clock.advance(FLUSH_MS)
  await whenStored(pipeline, other, 1)
  await acceptLines(pipeline)
  for (const answer of answers) answer(SUCCEEDED)
  await worker.loop.whenIdle()

  expect(await transcriptOf(pipeline, troubled)).toEqual(['1 text troubled'])
})

test('the month of a line is created if upkeep has not created it', async () => {
  const pipeline = await pipelineAt(START)
  const worker = pipeline.worker()
  const { context, answer } = await startRun(pipeline, worker)
  await sql`drop table carillon.transcripts_2026_03`.execute(pipeline.db)
  context.record({ kind: 'text', text: 'line' })

  answer(SUCCEEDED)
  await worker.loop.whenIdle()

  expect(await transcriptOf(pipeline, context)).toEqual(['1 text line'])
})

test('a month is dropped with the transcripts of its runs', async () => {
  const pipeline = await pipelineAt(START)
  const worker = pipeline.worker()
  const { context, answer } = await startRun(pipeline, worker)
  record(context)
  answer(SUCCEEDED)
  await worker.loop.whenIdle()

  await dropPartitions(pipeline.workerDb, { before: new Date('2026-04-01T00:00:00Z') })

  const { rowCount } = await pipeline.database.pool.query('select from carillon.transcripts')
  expect(rowCount).toBe(0)
})

function record(context: TargetContext<unknown>): void {
  context.record({ kind: 'text', text: 'line' })
}

/** Resolves once a connection has tried to write lines. Postgres shows only the beginning of a statement. */
async function whenTried({ database }: Pipeline): Promise<void> {
  const asked = `select from pg_stat_activity
    where datname = current_database() and query ~ '^\\s*with part as materialized' and state = 'idle'`
  while ((await database.pool.query(asked)).rowCount === 0) continue
}
