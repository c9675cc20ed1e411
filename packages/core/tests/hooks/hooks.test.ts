import { setImmediate } from 'node:timers/promises'

import { expect, test } from 'vitest'

import type { EventMap } from '../../src/kernel/events.ts'
import { Runs } from '../../src/ledger/completions.ts'
import type { Admission } from '../../src/ports/target.ts'
import { emptiedPipelines } from '../emptied-pipeline.ts'
import { CALLER, HOUR, MINUTE, type Pipeline, type TestWorker } from '../pipeline.ts'
import { FAIL, held, SUCCEEDED } from '../scripted-target.ts'
import { ADMITTED, note, noteCandidates, noteEnds, noteHooks, notesOf } from './hooked.ts'

const pipelineAt = emptiedPipelines()
const START = '2026-03-02T09:00:00Z'

/** A schedule of a kind with hooks, and a worker that serves it. */
async function hooked(policy: object = {}): Promise<{
  readonly pipeline: Pipeline
  readonly worker: TestWorker
  readonly schedule: { readonly id: string }
}> {
  const pipeline = await pipelineAt(START)
  await noteHooks(pipeline)
  const schedule = await pipeline.create({ policy, target: { kind: 'test', timeoutSeconds: 86_400 } })
  return { pipeline, worker: pipeline.worker(), schedule }
}

async function nextMinute({ clock }: Pipeline, worker: TestWorker): Promise<void> {
  clock.advance(MINUTE)
  await worker.heartbeat.runOnce()
  await worker.runDue()
}

function failuresOf(worker: TestWorker): string[] {
  const failures: string[] = []
  worker.events.on('service.failed', ({ service }: EventMap['service.failed']) => failures.push(service))
  return failures
}

function answer(admission: Admission) {
  return (_tx: unknown, candidates: readonly unknown[]): Promise<Admission[]> =>
    Promise.resolve(candidates.map(() => admission))
}

test('admit is called before each attempt, and settled with how each ended, in the transactions that write the runs', async () => {
  const { pipeline, worker, schedule } = await hooked({ overlap: 'queue' })
  pipeline.target.script = ({ attempt }) => (attempt === 1 ? FAIL : SUCCEEDED)
  await nextMinute(pipeline, worker)
  pipeline.clock.advance(20_000)
  await worker.heartbeat.runOnce()
  await worker.runDue()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded'])
  expect(await notesOf(pipeline)).toEqual([
    'admit attempt 1',
    'settled failed: retrying',
    'admit attempt 2',
    'settled succeeded: succeeded',
  ])
})

test('a slot that is refused does not run: its line has the reason, and open runs stay as they are', async () => {
  const { pipeline, worker, schedule } = await hooked({ overlap: 'replace' })
  pipeline.target.script = held().script
  pipeline.clock.advance(MINUTE)
  await worker.startDue()
  pipeline.target.admit = answer({ kind: 'refused', reason: 'missed' })

  await pipeline.pass(MINUTE, worker)
  await worker.startDue()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 running', '09:02 pending'])
  const other = await pipeline.create({ policy: { overlap: 'forbid' } })
  await pipeline.pass(MINUTE, worker)
  await worker.startDue()
  expect(await pipeline.lines(other)).toEqual(['09:03 skipped missed'])
  expect(await pipeline.scheduler.get(CALLER, other.id)).toMatchObject({ runCount: 0, consecutiveFailures: 0 })
})

test('a slot that is refused does not supersede a run that waits for its retry', async () => {
  const { pipeline, worker, schedule } = await hooked({ retry: { maxAttempts: 3, baseSeconds: 100, capSeconds: 100 } })
  pipeline.target.script = () => FAIL
  await nextMinute(pipeline, worker)
  pipeline.target.admit = answer({ kind: 'refused', reason: 'missed' })
  await pipeline.pass(MINUTE, worker)
  await worker.runDue()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 retrying', '09:02 skipped missed'])
})

test('a refusal that counts as a failure pauses the schedule after as many as its policy allows', async () => {
  const { pipeline, worker, schedule } = await hooked({ autoPauseThreshold: 3 })
  pipeline.target.admit = answer({ kind: 'refused', reason: 'missed', isFailure: true })

  for (let slots = 0; slots < 4; slots += 1) await nextMinute(pipeline, worker)

  expect(await pipeline.scheduler.get(CALLER, schedule.id)).toMatchObject({
    state: 'paused',
    pausedReason: 'auto:consecutive_failures',
    consecutiveFailures: 3,
  })
  expect(await pipeline.lines(schedule)).toHaveLength(3)
})

test('a run that was tried and is then refused has failed for that reason', async () => {
  const { pipeline, worker, schedule } = await hooked({ overlap: 'queue' })
  pipeline.target.script = () => FAIL
  await nextMinute(pipeline, worker)
  pipeline.target.admit = answer({ kind: 'refused', reason: 'missed' })
  pipeline.clock.advance(20_000)
  await worker.heartbeat.runOnce()
  await worker.runDue()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 failed missed'])
  expect(pipeline.target.calls).toHaveLength(1)
})

test('a deferred slot has begun and waits: admit is asked again at the instant that it named', async () => {
  const { pipeline, worker, schedule } = await hooked({ overlap: 'queue' })
  const until = pipeline.clock.instant + MINUTE + 30_000
  pipeline.target.admit = answer({ kind: 'deferred', until, why: 'no credit' })
  await nextMinute(pipeline, worker)
  expect(await pipeline.ledger(schedule)).toMatchObject([{ state: 'pending', waitsFor: 'deferred', attemptCount: 0 }])

  pipeline.target.admit = answer(ADMITTED)
  await pipeline.pass(20_000, worker)
  await worker.runDue()
  expect(pipeline.target.calls).toEqual([])
  await pipeline.pass(10_000, worker)
  await worker.runDue()

  expect(await pipeline.ledger(schedule)).toMatchObject([{ state: 'succeeded', attemptCount: 1 }])
})

test('if admit throws, its runs fail and are retried, and what it wrote is rolled back', async () => {
  const { pipeline, worker, schedule } = await hooked({ overlap: 'queue' })
  const failures = failuresOf(worker)
  pipeline.target.admit = async (tx, candidates) => {
    await noteCandidates(tx, candidates)
    throw new Error('no billing')
  }
  await nextMinute(pipeline, worker)

  expect(await pipeline.ledger(schedule)).toMatchObject([
    { state: 'retrying', waitsFor: 'retry', attemptCount: 1, error: { code: 'admit_failed' } },
  ])
  expect(pipeline.target.calls).toEqual([])
  expect(await notesOf(pipeline)).toEqual(['settled failed: retrying'])
  expect(failures).toEqual(['hook admit of test'])
})

test.each<[what: string, admission: unknown]>([
  ['no list', null],
  ['a list that is too short', []],
  ['something else', [{ kind: 'maybe' }]],
  ['a reason that no module declares', [{ kind: 'refused', reason: 'no_such_word' }]],
  ['an instant that is none', [{ kind: 'deferred', until: Number.NaN, why: '' }]],
])('admit that answers %s fails its runs, not the batch', async (_what, answers) => {
  const { pipeline, worker, schedule } = await hooked()
  pipeline.target.admit = () => Promise.resolve(answers as Admission[])
  await nextMinute(pipeline, worker)

  expect(await pipeline.ledger(schedule)).toMatchObject([{ state: 'retrying', error: { code: 'admit_failed' } }])
})

test('a hook that hangs is given up after its time, and sends nothing more', async () => {
  const { pipeline, worker, schedule } = await hooked()
  const late = Promise.withResolvers<void>()
  const hanging = Promise.withResolvers<void>()
  pipeline.target.admit = async (tx, candidates) => {
    hanging.resolve()
    await late.promise
    await noteCandidates(tx, candidates)
    return []
  }
  pipeline.clock.advance(MINUTE)
  await worker.heartbeat.runOnce()
  const begun = worker.loop.runOnce()
  await hanging.promise
  pipeline.clock.advance(10_000)
  await begun
  await worker.loop.whenIdle()
  late.resolve()
  await Promise.resolve()

  expect(await pipeline.ledger(schedule)).toMatchObject([{ state: 'retrying', error: { code: 'admit_failed' } }])
  expect((await notesOf(pipeline)).filter((text) => text.startsWith('admit'))).toEqual([])
})

test('if settled throws for one run of a batch, the others are settled without it', async () => {
  const { pipeline, worker } = await hooked({ overlap: 'allow' })
  const schedules = await Promise.all(
    Array.from({ length: 6 }, () => pipeline.create({ policy: { overlap: 'allow' } })),
  )
  const poison = schedules[3]?.id
  let isWriting = false
  pipeline.target.settled = async (tx, ends) => {
    isWriting = true
    try {
      await noteEnds(tx, ends)
      if (ends.some(({ scheduleId }) => scheduleId === poison)) throw new Error('poison')
    } finally {
      isWriting = false
    }
  }
  const settled: number[] = []
  worker.events.on('attempt.settled', ({ scheduledFor }) => settled.push(scheduledFor))
  pipeline.clock.advance(MINUTE)
  await worker.startDue()
  // Ends the pauses between the tries, one after the other, but none of the time limits of a hook that is under way.
  const whenSettled = async (count: number): Promise<void> => {
    while (settled.length < count) {
      if (!isWriting && pipeline.clock.waiting > 0) pipeline.clock.advance(250)
      await setImmediate()
    }
  }
  await whenSettled(6)

  const { rows } = await pipeline.database.pool.query<{ state: string; runs: number }>(
    `select state, count(*)::int as runs from carillon.runs group by state order by state`,
  )
  expect(rows).toEqual([
    { state: 'running', runs: 1 },
    { state: 'succeeded', runs: 6 },
  ])
  pipeline.target.settled = noteEnds
  await whenSettled(7)
  expect((await notesOf(pipeline)).filter((text) => text === 'settled succeeded: succeeded')).toHaveLength(7)
})

test('a run whose hook settled has thrown for a minute fails, and the hook is called once more', async () => {
  const { pipeline, worker, schedule } = await hooked()
  const called: string[] = []
  pipeline.target.settled = async (tx, ends) => {
    for (const { ending, error, runId } of ends) {
      called.push(`${ending} ${error?.code ?? ''}`.trim())
      await note(tx, 'settled', runId, ending)
    }
    throw new Error('never')
  }
  pipeline.clock.advance(MINUTE)
  await worker.startDue()
  for (let passed = 0; passed < 2 * MINUTE && worker.loop.inFlight > 0; passed += 5000) {
    await pipeline.pass(5000, worker)
    await setImmediate()
  }
  await worker.loop.whenIdle()

  expect(await pipeline.ledger(schedule)).toMatchObject([{ state: 'failed', error: { code: 'settle_failed' } }])
  expect(called.at(-1)).toBe('malformed settle_failed')
  expect(await notesOf(pipeline)).toEqual(['admit attempt 1'])
})

test.each<[what: string, effect: { kind: 'complete' } | { kind: 'pause'; reason: string }, expected: object]>([
  ['completes', { kind: 'complete' }, { state: 'completed', nextSlotAt: null }],
  ['pauses', { kind: 'pause', reason: 'no credit' }, { state: 'paused', pausedReason: 'no credit' }],
])(
  'settled %s the schedule in its transaction, and the slots that are due by then get their lines',
  async (_what, effect, expected) => {
    const { pipeline, worker, schedule } = await hooked({ overlap: 'allow' })
    const { script, answer: end } = held()
    pipeline.target.script = script
    pipeline.target.settled = (_tx, ends) =>
      Promise.resolve(new Map(ends.map(({ scheduleId }) => [scheduleId, effect])))
    pipeline.clock.advance(MINUTE)
    await worker.startDue()
    await pipeline.pass(2 * MINUTE + 1000, worker)
    const settled = worker.whenSettled()
    end(SUCCEEDED)
    await settled

    expect(await pipeline.scheduler.get(CALLER, schedule.id)).toMatchObject(expected)
    const { rows } = await pipeline.database.pool.query('select reason from carillon.slot_backlogs')
    expect(rows).toHaveLength(1)
    const history = await pipeline.scheduler.history(CALLER, schedule.id)
    expect(JSON.stringify(history)).toContain(effect.kind === 'pause' ? 'no credit' : 'completed')
  },
)

test('admit completes the schedule of a run that it refuses', async () => {
  const { pipeline, worker, schedule } = await hooked()
  pipeline.target.admit = answer({ kind: 'refused', reason: 'missed', schedule: { kind: 'complete' } })
  await nextMinute(pipeline, worker)

  expect(await pipeline.scheduler.get(CALLER, schedule.id)).toMatchObject({ state: 'completed' })
  expect(await pipeline.lines(schedule)).toEqual(['09:01 skipped missed'])
})

test('a worker that does not serve a kind with hooks leaves its lost runs to one that does', async () => {
  const { pipeline, worker, schedule } = await hooked({ overlap: 'queue' })
  pipeline.target.script = held().script
  pipeline.clock.advance(MINUTE)
  await worker.startDue()
  worker.process.stop()
  const other = pipeline.worker('other')
  await pipeline.pass(MINUTE / 2, other)
  await other.rescuer.runOnce()

  expect(await pipeline.ledger(schedule)).toMatchObject([{ state: 'retrying', waitsFor: 'worker' }])
  expect(await notesOf(pipeline)).toEqual(['admit attempt 1', 'settled lost: retrying'])
})

test('settled is called when a run is detached and when it is completed, with the completion that decided', async () => {
  const { pipeline, worker, schedule } = await hooked()
  pipeline.target.script = () => ({ kind: 'accepted', deadlineMs: HOUR })
  await nextMinute(pipeline, worker)
  const [run] = await pipeline.ledger(schedule)
  const runs = new Runs({ db: pipeline.workerDb, clock: pipeline.clock, by: 'module:test' })
  await runs.complete(null, { runId: run?.id ?? '', attempt: 1 }, { outcome: 'succeeded' })
  await worker.runDue()

  expect(await notesOf(pipeline)).toEqual([
    'admit attempt 1',
    'settled accepted: detached',
    'settled succeeded: succeeded',
  ])
})

test('settled is repeated with the completion that came while it ran, and nothing of the first call stays', async () => {
  const { pipeline, worker, schedule } = await hooked()
  pipeline.target.script = () => FAIL
  const runs = new Runs({ db: pipeline.workerDb, clock: pipeline.clock, by: 'module:test' })
  let isFirst = true
  pipeline.target.settled = async (tx, ends) => {
    await noteEnds(tx, ends)
    const [end] = ends
    if (isFirst && end !== undefined) {
      await runs.complete(null, { runId: end.runId, attempt: 1 }, { outcome: 'succeeded' })
    }
    isFirst = false
  }
  await nextMinute(pipeline, worker)

  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded'])
  expect(await notesOf(pipeline)).toEqual(['admit attempt 1', 'settled succeeded: succeeded'])
})
