import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'

import { createClient, type Client, type Run } from '@carillon/api'
import { readSettings, startEverything, type RunningCarillon } from '@carillon/server'

const CARILLON_ADMIN_KEY = 'the-admin-key-of-this-test'
const cadence = { kind: 'cron', expression: '@yearly', timezone: 'UTC' } as const

let dataDir: string
let carillon: RunningCarillon
let client: Client

// The whole of Carillon with the module, on a Postgres of its own.
before(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'greeting-'))
  const env = { CARILLON_ADMIN_KEY, CARILLON_DATA_DIR: dataDir, CARILLON_LOG_LEVEL: 'silent', CARILLON_PORT: '0' }
  const settings = readSettings({ ...env, CARILLON_MODULES: './greeting.ts' }, { folder: import.meta.dirname })
  carillon = await startEverything(settings)
  client = createClient(carillon.url, CARILLON_ADMIN_KEY)
})
after(async () => {
  await carillon.stop()
  await rm(dataDir, { recursive: true })
})

/** Runs a schedule now, and returns its run once it is over. Follows the events first, so that it misses none. */
async function runNow(scheduleId: string): Promise<Run> {
  const opened = Promise.withResolvers<unknown>()
  const over = (async () => {
    for await (const { event, data } of client.events({ onPosition: opened.resolve })) {
      if (event !== 'run' || data.run.scheduleId !== scheduleId) continue
      if (['succeeded', 'failed', 'cancelled'].includes(data.run.state)) return data.run
    }
    throw new Error('expected the end of the run, got the end of the events')
  })()
  await opened.promise
  await client.schedules.run(scheduleId)
  return over
}

test('a schedule of the kind greeting runs, and the ledger keeps its result', async () => {
  const { id } = await client.schedules.create({ name: 'Hello', cadence, target: { kind: 'greeting', to: 'Ada' } })

  const { id: runId, state } = await runNow(id)

  assert.equal(state, 'succeeded')
  const { attempts } = await client.runs.get(runId)
  assert.partialDeepStrictEqual(attempts, [{ outcome: 'succeeded', result: { said: 'hello Ada' } }])
})

test('a target without a name is refused with the field at fault', async () => {
  const refused = client.schedules.create({ name: 'Hello', cadence, target: { kind: 'greeting' } })

  await assert.rejects(refused, { code: 'invalid_input', message: /target\.to: expected a name/ })
})

test('the kind is listed with its schema and its example', async () => {
  const { items } = await client.targetKinds.list()

  assert.deepEqual(items.find(({ kind }) => kind === 'greeting')?.example, { kind: 'greeting', to: 'Ada' })
})
