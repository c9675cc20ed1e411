import { join } from 'node:path'

import { afterAll, beforeAll, expect, test } from 'vitest'

import { CliRig } from '../cli/rig.ts'
import { REPOSITORY } from '../house/run-tool.ts'

let rig: CliRig

beforeAll(async () => {
  rig = await CliRig.start()
})

afterAll(() => rig[Symbol.asyncDispose]())

test('the crontab of the examples becomes schedules with the names, the zone and the calls in the file', async () => {
  const { exitCode } = await rig.run('import', [join(REPOSITORY, 'examples/crontab')])
  const { items } = await rig.client.schedules.list()

  expect(exitCode).toBe(0)
  expect(items.map(({ name, description, target }) => ({ name, description, target }))).toEqual(
    expect.arrayContaining([
      {
        name: 'Morning digest',
        description: 'At 09:00 on Monday through Friday, in Europe/Madrid',
        target: expect.objectContaining({ url: 'http://127.0.0.1:9000/digest', payload: { list: 'a' } }) as object,
      },
      {
        name: 'Nightly cleanup',
        description: 'At 00:00 every day, in Europe/Madrid',
        target: expect.objectContaining({ method: 'DELETE' }) as object,
      },
      {
        name: 'Health probe',
        description: 'Every 15 minutes, in Europe/Madrid',
        target: expect.objectContaining({ method: 'GET' }) as object,
      },
    ]),
  )
  expect(items).toHaveLength(3)
})
