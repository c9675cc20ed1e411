import { TRANSCRIPT_BYTES, TRANSCRIPT_LINES_MAX } from '@carillon/api'
import { expect, test } from 'vitest'

import { TranscriptWriters } from '../../src/pipeline/transcript-writers.ts'
import type { TranscriptEntry } from '../../src/ports/target.ts'
import { emptiedPipelines } from '../emptied-pipeline.ts'
import { CALLER, MINUTE, type Pipeline, type TestWorker } from '../pipeline.ts'
import { FAIL, SUCCEEDED } from '../scripted-target.ts'
import { transcriptOf } from '../transcript-lines.ts'

const pipelineAt = emptiedPipelines()
const START = '2026-03-02T09:00:30Z'
const RUN_BYTES = TRANSCRIPT_BYTES.min
const KB_10 = 10_000

function text(length: number): TranscriptEntry {
  return { kind: 'text', text: 'x'.repeat(length) }
}

/** Runs one slot whose attempts record these entries, one list for each, and fail, except for the last one. */
async function attempt(pipeline: Pipeline, worker: TestWorker, attempts: readonly (readonly TranscriptEntry[])[]) {
  const { target, clock } = pipeline
  target.script = ({ attempt: number, record }) => {
    for (const entry of attempts[number - 1] ?? []) record(entry)
    return number < attempts.length ? FAIL : SUCCEEDED
  }
  const retry = { maxAttempts: attempts.length, baseSeconds: 1, capSeconds: 1 }
  await pipeline.create({ policy: { retry } })
  clock.advance(MINUTE / 2)
  for (let done = 0; done < attempts.length; done += 1) {
    await worker.runDue()
    await pipeline.pass(2000, worker)
  }
  const [context] = target.calls
  if (context === undefined) throw new Error('expected a call of the target')
  return context
}

/** The kinds of the lines, with the attempts that wrote them. */
async function kindsOf(pipeline: Pipeline, run: { readonly runId: string }): Promise<string[]> {
  const { lines } = await pipeline.scheduler.transcript(CALLER, run.runId, { limit: 500 })
  return lines.map(({ attempt: number, entry }) => `${number} ${entry.kind}`)
}

test('past the limit of a run exactly one line says so, and all attempts together count', async () => {
  const pipeline = await pipelineAt(START)
  const worker = pipeline.worker('worker', 200, { transcripts: { runBytes: RUN_BYTES } })
  const first = Array.from({ length: 6 }, () => text(KB_10))
  const second = [text(1000), text(KB_10), text(1), text(1)]

  const run = await attempt(pipeline, worker, [first, second, [text(1)], [text(1)]])

  expect(await kindsOf(pipeline, run)).toEqual([...first.map(() => '1 text'), '2 text', '2 truncated'])
  expect(await transcriptOf(pipeline, run)).toContain(
    '2 truncated the transcript has reached its limit: nothing after this line was kept',
  )
})

test('the limit counts what one attempt wrote in several statements', async () => {
  const pipeline = await pipelineAt(START)
  const worker = pipeline.worker('worker', 200, { transcripts: { runBytes: RUN_BYTES } })
  const many = Array.from({ length: 40 }, () => text(KB_10))

  const run = await attempt(pipeline, worker, [many])

  expect(await kindsOf(pipeline, run)).toEqual([...many.slice(0, 6).map(() => '1 text'), '1 truncated'])
})

test('past the limit of lines one line says so, however short the lines are', async () => {
  const pipeline = await pipelineAt(START)
  const worker = pipeline.worker('worker', 200, { transcripts: { runBytes: TRANSCRIPT_BYTES.max } })

  const run = await attempt(pipeline, worker, [Array.from({ length: TRANSCRIPT_LINES_MAX + 5 }, () => text(1))])

  const { rows } = await pipeline.database.pool.query<{ kind: string; lines: number }>(
    `select entry ->> 'kind' as kind, count(*)::int as lines from carillon.transcripts group by 1 order by 2`,
  )
  expect(rows).toEqual([
    { kind: 'truncated', lines: 1 },
    { kind: 'text', lines: TRANSCRIPT_LINES_MAX - 1 },
  ])
  expect(run.attempt).toBe(1)
})

test('a worker that buffers as much as it may drops lines and says how many, until lines are written again (I14)', async () => {
  const pipeline = await pipelineAt(START)
  const worker = pipeline.worker('worker', 200, { transcripts: { bufferBytes: 2 * KB_10 } })

  const run = await attempt(pipeline, worker, [
    [text(KB_10), text(KB_10), text(KB_10), { kind: 'text', text: 'fits' }, text(KB_10)],
  ])

  const { lines } = await pipeline.scheduler.transcript(CALLER, run.runId)
  expect(lines.map(({ entry }) => [entry.kind, entry['lines']])).toEqual([
    ['text', undefined],
    ['dropped', 2],
    ['text', undefined],
    ['dropped', 1],
  ])
})

test('memory that lines took is free again once they are written, so a later run may buffer as much', async () => {
  const pipeline = await pipelineAt(START)
  const worker = pipeline.worker('worker', 200, { transcripts: { bufferBytes: 2 * KB_10 } })

  const run = await attempt(pipeline, worker, [[text(KB_10)], [text(KB_10)], [text(KB_10)]])

  expect(await kindsOf(pipeline, run)).toEqual(['1 text', '2 text', '3 text'])
})

test('an entry that is no JSON, or too long, leaves a line that says so', async () => {
  const pipeline = await pipelineAt(START)
  const entries = [
    { kind: 'text', n: 1n },
    text(100_000),
    { kind: 'text', text: 'a\0b' },
  ] as unknown as TranscriptEntry[]

  const run = await attempt(pipeline, pipeline.worker(), [entries])

  const { lines } = await pipeline.scheduler.transcript(CALLER, run.runId)
  expect(lines.map(({ entry }) => entry)).toMatchObject([
    { kind: 'refused', message: 'expected plain JSON, got a bigint' },
    { kind: 'text', cut: true },
    { kind: 'text', text: 'a\uFFFDb' },
  ])
})

test.each([TRANSCRIPT_BYTES.min - 1, TRANSCRIPT_BYTES.max + 1, 100_000.5, Number.NaN])(
  'a worker refuses to start with a limit of %d bytes for the transcript of a run',
  async (runBytes) => {
    const { workerDb: db, clock, events } = await pipelineAt(START)

    expect(() => new TranscriptWriters({ db, clock, events }, { runBytes })).toThrow(
      expect.objectContaining({
        code: 'invalid_input',
        message: expect.stringMatching(/^transcriptBytes: expected a /) as string,
      }),
    )
  },
)
