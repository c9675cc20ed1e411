import { expect, test } from 'vitest'

import { MINUTE, Pipeline } from '../pipeline.ts'
import { SUCCEEDED } from '../scripted-target.ts'
import { traceCalls } from '../trace.ts'
import { callsBack, drawnCallsBack, drawnCounts, drawnSteps, filesOf, print, stepsOf } from '../walks.ts'

/** What the reader's list of the page counts besides the steps and the target. */
const BELOW = [
  'db/transact.ts',
  'cadences/cadence-cache.ts',
  'policy/begin.ts',
  'ledger/lines.ts',
  'access/store/permissions.ts',
]

const PART = { root: 'packages/core/src/', files: /^pipeline\// }

test('a run that succeeds passes the files of the pipeline in the order that the architecture page draws', async () => {
  await using pipeline = await Pipeline.at('2026-03-02T09:00:30Z')
  const worker = pipeline.worker()
  pipeline.target.script = () => SUCCEEDED
  const schedule = await pipeline.create()
  await pipeline.pass(MINUTE / 2, worker)

  const [loop] = worker.loop.services
  const calls = await traceCalls(
    async () => {
      const settled = worker.whenSettled()
      await loop?.runOnce()
      await settled
    },
    () => pipeline.pass(MINUTE, worker),
  )

  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded', '09:02 succeeded'])
  const steps = stepsOf(calls, PART)
  const back = callsBack(calls, steps, PART)
  const all = filesOf(calls)
  print(
    'The walk of a run:',
    steps.map(({ file, entry }, index) => `${index + 1}. ${file}: ${entry}`),
  )
  print('Calls into an earlier step:', back)
  print(`All ${all.length} files of core on the way:`, all)
  expect(steps).toEqual(drawnSteps('A run that succeeds at its first attempt:'))
  expect(back).toEqual(drawnCallsBack('pipeline/'))
  expect(all).toEqual(expect.arrayContaining(BELOW.map((file) => `${PART.root}${file}`)))
  expect(drawnCounts('the steps above')[3]).toBe(steps.length)
  expect(drawnCounts('every file of core and server that is called')[3]).toBe(all.length)
  expect(drawnCounts("a reader's list")[3]).toBe(steps.length + BELOW.length + 1)
})
