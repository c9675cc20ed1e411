import { setImmediate } from 'node:timers/promises'

import { expect, test } from 'vitest'

import { whenBlocked, whileHeld } from '../blocked-statement.ts'
import { emptiedPipelines } from '../emptied-pipeline.ts'
import { CALLER, HEARTBEAT_MS, MINUTE, type Pipeline } from '../pipeline.ts'
import { FAIL, held, SUCCEEDED } from '../scripted-target.ts'
import { sql } from '../sql.ts'
import { transcriptOf, whenStored } from '../transcript-lines.ts'

const pipelineAt = emptiedPipelines()
const START = '2026-03-02T09:00:30Z'
const FLUSH_MS = 250
const LEASE_MS = 3 * HEARTBEAT_MS

/** Starts the run of the next slot, whose target answers when the test says so. */
async function startRun(pipeline: Pipeline, worker = pipeline.worker()) {
  const { script, answer } = held()
  pipeline.target.script = script
  await pipeline.create()
  pipeline.clock.advance(MINUTE / 2)
  await worker.startDue()
  const [context] = pipeline.target.contexts
  if (context === undefined) throw new Error('expected a call of the target')
  return { worker, context, answer }
}

test('lines are read in the order in which they were recorded, each with its attempt and the instant at which it was recorded', async () => {
  const pipeline = await pipelineAt(START)
  const { worker, context, answer } = await startRun(pipeline)
  const startedAt = pipeline.clock.instant
  context.record({ kind: 'text', text: 'first' })
  pipeline.clock.advance(100)
  context.record({ kind: 'tool', name: 'search', input: { q: 'x' } })
  answer(SUCCEEDED)
  await worker.loop.whenIdle()

  const { lines, isMore, state } = await pipeline.scheduler.transcript(CALLER, context.runId)

  expect(lines).toEqual([
    { id: '1-1', attempt: 1, at: startedAt, entry: { kind: 'text', text: 'first' } },
    { id: '1-2', attempt: 1, at: startedAt + 100, entry: { kind: 'tool', name: 'search', input: { q: 'x' } } },
  ])
  expect({ isMore, state }).toEqual({ isMore: false, state: 'succeeded' })
})

test('an entry is stored as it was when it was recorded, even if the target changes it afterwards', async () => {
  const pipeline = await pipelineAt(START)
  const { worker, context, answer } = await startRun(pipeline)
  const entry = { kind: 'text', text: 'before' }
  context.record(entry)
  entry.text = 'after'
  answer(SUCCEEDED)
  await worker.loop.whenIdle()

  expect(await transcriptOf(pipeline, context)).toEqual(['1 text before'])
})

test('lines are written 250 ms after they were recorded, while the run is under way', async () => {
  const pipeline = await pipelineAt(START)
  const { context } = await startRun(pipeline)
  context.record({ kind: 'text', text: 'early' })
  pipeline.clock.advance(FLUSH_MS - 1)
  context.record({ kind: 'text', text: 'late' })
  await setImmediate()
  expect(await transcriptOf(pipeline, context)).toEqual([])

  pipeline.clock.advance(1)
  await whenStored(pipeline, context, 2)

  expect(await transcriptOf(pipeline, context)).toEqual(['1 text early', '1 text late'])
})

test('16 kB of lines are written at once', async () => {
  const pipeline = await pipelineAt(START)
  const { context } = await startRun(pipeline)

  context.record({ kind: 'text', text: 'x'.repeat(16_384) })

  await whenStored(pipeline, context, 1)
})

test('an attempt is settled after all of its lines are written', async () => {
  const pipeline = await pipelineAt(START)
  const { worker, context, answer } = await startRun(pipeline)
  context.record({ kind: 'text', text: 'last words' })

  await whileHeld(pipeline, 'lock table carillon.transcripts in exclusive mode', async () => {
    answer(SUCCEEDED)
    await whenBlocked(pipeline)
    // The settlement is written on another connection: it would be there by now.
    for (let turns = 0; turns < 50; turns += 1) {
      expect(await pipeline.scheduler.getRun(CALLER, context.runId)).toMatchObject({ state: 'running' })
    }
  })
  await worker.loop.whenIdle()

  expect(await transcriptOf(pipeline, context)).toEqual(['1 text last words'])
  expect(await pipeline.scheduler.getRun(CALLER, context.runId)).toMatchObject({ state: 'succeeded' })
})

test('lines of all attempts at a run follow one another', async () => {
  const pipeline = await pipelineAt(START)
  const { target, clock } = pipeline
  target.script = ({ attempt, record }) => {
    record({ kind: 'text', text: `try ${attempt}` })
    return attempt === 1 ? FAIL : SUCCEEDED
  }
  await pipeline.create()
  const worker = pipeline.worker()
  clock.advance(MINUTE / 2)
  await worker.runDue()
  await pipeline.pass(MINUTE / 2, worker)
  await worker.runDue()

  expect(await transcriptOf(pipeline, target.contexts[0])).toEqual(['1 text try 1', '2 text try 2'])
})

test('lines of an attempt that was handed back stay, and the next attempt of the same number appends to them', async () => {
  const pipeline = await pipelineAt(START)
  const { worker, context } = await startRun(pipeline)
  context.record({ kind: 'text', text: 'handed back' })
  const drained = worker.loop.drain(0)
  pipeline.clock.advance(0)
  await drained
  pipeline.target.script = ({ record }) => {
    record({ kind: 'text', text: 'again' })
    return SUCCEEDED
  }

  await pipeline.worker('other').runDue()

  expect(await transcriptOf(pipeline, context)).toEqual(['1 text handed back', '1 text again'])
})

test('a worker that lost its run adds nothing, while the next worker records or after the run is over (I12)', async () => {
  const pipeline = await pipelineAt(START)
  const { target, clock } = pipeline
  const { worker: stopped, context, answer } = await startRun(pipeline, pipeline.worker('stopped'))
  context.record({ kind: 'text', text: 'before the loss' })
  clock.advance(FLUSH_MS)
  await whenStored(pipeline, context, 1)
  stopped.process.stop()
  clock.advance(LEASE_MS)
  const next = held()
  target.script = next.script
  const other = pipeline.worker('other')
  await other.heartbeat.runOnce()
  expect(await other.rescuer.runOnce()).toMatchObject({ rescued: 1 })
  await other.startDue()

  context.record({ kind: 'text', text: 'after the loss' })
  answer(SUCCEEDED)
  await stopped.loop.whenIdle()
  target.contexts[1]?.record({ kind: 'text', text: 'of the next worker' })
  next.answer(SUCCEEDED)
  await other.loop.whenIdle()

  expect(await transcriptOf(pipeline, context)).toEqual(['1 text before the loss', '2 text of the next worker'])
})

test('a run cannot be taken again between the check that its worker holds it and the write of its lines (I12)', async () => {
  const pipeline = await pipelineAt(START)
  const { context } = await startRun(pipeline)
  await sql`
    create function carillon.wait() returns trigger language plpgsql as $$
    begin perform pg_advisory_xact_lock(4711); return new; end $$`.execute(pipeline.db)
  await sql`
    create trigger wait before insert on carillon.transcripts for each row execute function carillon.wait()`.execute(
    pipeline.db,
  )
  context.record({ kind: 'text', text: 'in time' })

  await whileHeld(pipeline, 'select pg_advisory_xact_lock(4711)', async () => {
    pipeline.clock.advance(FLUSH_MS)
    await whenBlocked(pipeline)
    const retaken = pipeline.database.pool.query(
      `update carillon.runs set token = token + 1 where id = '${context.runId}'`,
    )
    // Only if the insert has locked the run does the second statement wait, too.
    await Promise.race([whenBlocked(pipeline, 2), retaken.then(() => Promise.reject(new Error('taken meanwhile')))])
    retaken.catch(() => undefined)
  })

  await whenStored(pipeline, context, 1)
  await sql`drop function carillon.wait cascade`.execute(pipeline.db)
})

test('what a target records after its time limit is dropped, even before the attempt is settled', async () => {
  const pipeline = await pipelineAt(START)
  const { target, clock } = pipeline
  const worker = pipeline.worker()
  target.script = () => new Promise(() => undefined)
  const { id } = await pipeline.create({ target: { kind: 'test', timeoutSeconds: 1 } })
  clock.advance(MINUTE / 2)
  await worker.startDue()
  const [context] = target.contexts

  await whileHeld(pipeline, `select from carillon.schedules where id = '${id}' for update`, async () => {
    clock.advance(1000)
    await whenBlocked(pipeline)
    context?.record({ kind: 'text', text: 'late' })
    clock.advance(FLUSH_MS)
    // A line that was kept would be stored by now.
    for (let reads = 0; reads < 20; reads += 1) expect(await transcriptOf(pipeline, context)).toEqual([])
  })
  await worker.loop.whenIdle()

  expect(await pipeline.lines({ id })).toEqual(['09:01 retrying'])
  expect(await transcriptOf(pipeline, context)).toEqual([])
})

test('a run that records nothing opens no transcript', async () => {
  const pipeline = await pipelineAt(START)
  const worker = pipeline.worker()
  await pipeline.create()
  pipeline.clock.advance(MINUTE / 2)
  await worker.runDue()

  expect(await pipeline.scheduler.transcript(CALLER, pipeline.target.contexts[0]?.runId ?? '')).toEqual({
    lines: [],
    isMore: false,
    state: 'succeeded',
  })
})
