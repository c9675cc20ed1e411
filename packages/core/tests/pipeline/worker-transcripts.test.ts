import { TRANSCRIPT_BYTES } from '@carillon/api'
import { expect, test } from 'vitest'

import { createDb } from '../../src/db/database.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import type { Target } from '../../src/ports/target.ts'
import { Scheduler } from '../../src/scheduler.ts'
import { Worker } from '../../src/worker.ts'
import { createDatabase } from '../database.ts'
import { CALLER } from '../pipeline.ts'
import { ScriptedTarget, SUCCEEDED } from '../scripted-target.ts'

const NEXT_YEAR = { kind: 'once', at: '2099-03-02T09:00:00Z' }

test('a worker stores what its targets record, up to its limit, and what a run recorded is read as soon as the run is over', async () => {
  await using database = await createDatabase()
  const target = new ScriptedTarget()
  target.script = ({ record }) => {
    for (let line = 0; line < 10; line += 1) record({ kind: 'text', text: 'x'.repeat(10_000) })
    return SUCCEEDED
  }
  const targets = new Map<string, Target>([[target.kind, target]])
  const scheduler = new Scheduler({ db: createDb(database.pool), clock: systemClock, targets })
  await using worker = new Worker({
    databaseUrl: database.url,
    targets: [target],
    transcriptBytes: TRANSCRIPT_BYTES.min,
  })
  const settled = new Promise((resolve) => worker.events.on('attempt.settled', resolve))
  await worker.start()
  const { id } = await scheduler.create(CALLER, { name: 'x', cadence: NEXT_YEAR, target: { kind: 'test' } })

  const run = await scheduler.runNow(CALLER, id)
  await settled

  const { lines, state } = await scheduler.transcript(CALLER, run.id)
  expect(state).toBe('succeeded')
  expect(lines.map(({ entry }) => entry.kind)).toEqual([...Array<string>(6).fill('text'), 'truncated'])
  expect(worker.failing).toBeNull()
})

test('a worker refuses a limit of transcripts that is out of range', () => {
  const options = { databaseUrl: 'postgres://localhost/none', targets: [], transcriptBytes: 1 }

  expect(() => new Worker(options)).toThrow(/^transcriptBytes: expected a whole number from 65536 to 16777216, got 1/)
})
