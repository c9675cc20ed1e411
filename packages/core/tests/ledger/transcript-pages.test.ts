import { TRANSCRIPT_PAGE_MAX_BYTES, TRANSCRIPT_PAGE_SIZE } from '@carillon/api'
import { expect, test } from 'vitest'

import { transact } from '../../src/db/transact.ts'
import { listTranscriptLines } from '../../src/ledger/store/transcripts.ts'
import { isAfterLine, isTranscriptComplete, type TranscriptPage } from '../../src/ledger/transcripts.ts'
import { emptiedPipelines } from '../emptied-pipeline.ts'
import { CALLER, MINUTE, type Pipeline } from '../pipeline.ts'
import { SUCCEEDED } from '../scripted-target.ts'

const pipelineAt = emptiedPipelines()

/** Makes a run that records texts of these lengths. */
async function runWith(pipeline: Pipeline, lengths: readonly number[]): Promise<string> {
  pipeline.target.script = ({ record }) => {
    for (const length of lengths) record({ kind: 'text', text: 'x'.repeat(length) })
    return SUCCEEDED
  }
  await pipeline.create()
  const worker = pipeline.worker('worker', 200, { transcripts: { runBytes: 1_000_000 } })
  pipeline.clock.advance(MINUTE / 2)
  await worker.runDue()
  return pipeline.target.calls[0]?.runId ?? ''
}

/** How many lines each page has. */
async function pagesOf(pipeline: Pipeline, runId: string, limit?: number): Promise<number[]> {
  const counts: number[] = []
  const read = (after?: string): Promise<TranscriptPage> =>
    pipeline.scheduler.transcript(CALLER, runId, {
      ...(limit !== undefined && { limit }),
      ...(after !== undefined && { after }),
    })
  let page = await read()
  counts.push(page.lines.length)
  while (page.isMore) {
    page = await read(page.lines.at(-1)?.id)
    counts.push(page.lines.length)
  }
  return counts
}

test('a page has at most the lines that were asked for, and says whether more follow', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:30Z')
  const runId = await runWith(pipeline, Array<number>(250).fill(1))

  expect(await pagesOf(pipeline, runId)).toEqual([100, 100, 50])
  expect(await pagesOf(pipeline, runId, 125)).toEqual([125, 125])
  expect(await pagesOf(pipeline, runId, TRANSCRIPT_PAGE_SIZE.max)).toEqual([250])
})

test('a page of long lines has as many bytes as fit', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:30Z')
  const runId = await runWith(pipeline, Array<number>(20).fill(30_000))
  const fitting = Math.floor(TRANSCRIPT_PAGE_MAX_BYTES / 30_028)

  expect(await pagesOf(pipeline, runId)).toEqual([fitting, fitting, 20 - 2 * fitting])
})

test('I9: lines are read by the tenant and project of the caller, and not by row-level security alone', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:30Z')
  const { db, clock, scheduler } = pipeline
  const { scheduleId, scheduledFor } = await scheduler.getRun(CALLER, await runWith(pipeline, [1]))
  const of = { scheduleId, scheduledFor, after: { token: 0, seq: 0 }, limit: 10 }
  // As superuser, whom row-level security does not stop.
  const linesOf = (tenantId: string, projectId: string) =>
    transact(db, clock, (tx) => listTranscriptLines(tx, { ...of, tenantId, projectId }))

  expect(await linesOf('acme', 'web')).toHaveLength(1)
  expect(await linesOf('acme', 'shop')).toEqual([])
  expect(await linesOf('globex', 'web')).toEqual([])
})

test.each([
  [{ limit: 0 }, 'limit'],
  [{ limit: TRANSCRIPT_PAGE_SIZE.max + 1 }, 'limit'],
  [{ after: 'x' }, 'after'],
  [{ after: 7 as unknown as string }, 'after'],
])('%j is refused', async (options, path) => {
  const { scheduler } = await pipelineAt('2026-03-02T09:00:30Z')

  await expect(scheduler.transcript(CALLER, 'x', options)).rejects.toMatchObject({
    code: 'invalid_input',
    problems: [{ path }],
  })
})

test('a transcript is complete once its run is over and no more lines are stored', () => {
  const page = (isMore: boolean, state: TranscriptPage['state']): boolean =>
    isTranscriptComplete({ lines: [], isMore, state })

  expect([page(false, 'succeeded'), page(true, 'succeeded')]).toEqual([true, false])
  expect([page(false, 'running'), page(false, 'retrying'), page(false, 'detached')]).toEqual([false, false, false])
})

test.each([
  ['1-1', undefined, true],
  ['1-2', '1-1', true],
  ['1-10', '1-9', true],
  ['2-1', '1-9', true],
  ['1-1', '1-1', false],
  ['1-9', '2-1', false],
])('line %s comes after line %s: %j', (id, other, expected) => {
  expect(isAfterLine(id, other)).toBe(expected)
})
