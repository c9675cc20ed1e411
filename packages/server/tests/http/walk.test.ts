import { traceCalls } from '@carillon/core/testing/trace'
import {
  callsBack,
  drawnCallsBack,
  drawnCounts,
  drawnSteps,
  filesOf,
  print,
  stepsOf,
} from '@carillon/core/testing/walks'
import { expect, test } from 'vitest'

import { DIGEST } from './example-schedules.ts'
import { createTestApp } from './test-app.ts'

/** These receive, limit, parse and log every request. */
const EVERY_REQUEST = ['connections', 'input', 'limits', 'operation-access', 'request-log'].map(
  (name) => `server/src/http/${name}.ts`,
)

/** What the reader's list of the page counts besides the steps. It leaves out the last one, the answer. */
const BELOW = ['access/quota', 'db/transact', 'cadences/cadence-cache'].map((name) => `core/src/${name}.ts`)

const PART = { root: 'packages/', files: /^server\/src\/http\/|^core\/src\/(schedules\/|[a-z-]+\.ts$)/ }

test('a create passes the files of the HTTP service, the facade and schedules as the architecture page draws', async () => {
  await using world = await createTestApp()
  let created = 0

  const calls = await traceCalls(async () => {
    created += 1
    const body = { ...DIGEST, name: `digest ${created}` }
    expect((await world.request('POST', '/api/v1/schedules', { body })).statusCode).toBe(201)
  })
  const callsOfAnother = await traceCalls(async () => {
    expect((await world.request('GET', '/api/v1/grants')).statusCode).toBe(200)
  })

  expect(created).toBe(2)
  const steps = stepsOf(calls, PART).filter(({ file }) => !EVERY_REQUEST.includes(file))
  const back = callsBack(calls, steps, PART)
  const all = filesOf(calls)
  print(
    'The walk of a create:',
    steps.map(({ file, entry }, index) => `${index + 1}. ${file}: ${entry}`),
  )
  print('Calls into an earlier step:', back)
  print('Every request:', EVERY_REQUEST)
  print(`All ${all.length} files of core and server on the way:`, all)
  expect(steps).toEqual(drawnSteps('A create:'))
  expect(back).toEqual(drawnCallsBack('core/'))
  expect(filesOf(callsOfAnother)).toEqual(expect.arrayContaining(EVERY_REQUEST.map((file) => `${PART.root}${file}`)))
  expect(all).toEqual(expect.arrayContaining(BELOW.map((file) => `${PART.root}${file}`)))
  expect(drawnCounts('the steps above')[1]).toBe(steps.length)
  expect(drawnCounts('every file of core and server that is called')[1]).toBe(all.length)
  expect(drawnCounts("a reader's list")[1]).toBe(steps.length - 1 + BELOW.length)
})
