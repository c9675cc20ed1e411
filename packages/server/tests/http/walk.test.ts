import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { traceFiles } from '@carillon/core/testing/trace'
import { expect, test } from 'vitest'

import { DIGEST } from './example-schedules.ts'
import { createTestApp } from './test-app.ts'

/** The steps of a create in their order, as docs/architecture.md draws them. */
const STEPS = [
  'server/src/http/operations.ts',
  'server/src/http/routes/schedules.ts',
  'core/src/scheduler.ts',
  'core/src/schedules/create.ts',
  'core/src/schedules/context.ts',
  'core/src/schedules/input.ts',
  'core/src/schedules/store/new-schedules.ts',
  'server/src/http/wire.ts',
]

/** Every request passes these before and after its operation. */
const EVERY_REQUEST = ['connections', 'input', 'limits', 'request-log', 'revisions'].map(
  (name) => `server/src/http/${name}.ts`,
)

const ARCHITECTURE = readFileSync(join(import.meta.dirname, '../../../../docs/architecture.md'), 'utf8')

test('a create passes 8 files of the HTTP service, the facade and the room of schedules', async () => {
  await using world = await createTestApp()
  // The first one loads what is cached.
  await world.request('POST', '/api/v1/schedules', { body: { ...DIGEST, name: 'first' } })

  let status = 0
  const traced = await traceFiles(async () => {
    status = (await world.request('POST', '/api/v1/schedules', { body: DIGEST })).statusCode
  })

  expect(status).toBe(201)
  const files = traced.map((file) => file.replace('packages/', ''))
  const onTheWalk = files.filter((file) =>
    /^(server\/src\/http|core\/src\/schedules)\/|^core\/src\/[a-z-]+\.ts$/.test(file),
  )
  const steps = onTheWalk.filter((file) => !EVERY_REQUEST.includes(file))
  const below = files.filter((file) => !onTheWalk.includes(file) && !file.startsWith('cadence/'))
  process.stdout.write(`The walk of a create:\n${STEPS.map((step) => `  ${step}\n`).join('')}`)
  process.stdout.write(`Every request:\n${EVERY_REQUEST.map((file) => `  ${file}\n`).join('')}`)
  process.stdout.write(
    `Called on the way, in the rooms and packages below:\n${below.map((file) => `  ${file}\n`).join('')}`,
  )
  expect(steps.toSorted()).toEqual(STEPS.toSorted())
  for (const step of STEPS) expect(ARCHITECTURE).toContain(`\`${step}\``)
})
