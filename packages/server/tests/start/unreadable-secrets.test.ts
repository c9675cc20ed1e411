import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { createDb, Secrets, type Check } from '@carillon/core'
import { createDatabase } from '@carillon/core/testing'
import { expect, onTestFinished, test } from 'vitest'

import { openSecretsKeys } from '../../src/start/keys.ts'
import { createLogger } from '../../src/start/log.ts'
import { examine, migrationsOf } from '../../src/start/maintenance.ts'
import { readSettings, type Settings } from '../../src/start/settings.ts'
import { startEverything } from '../../src/start/up.ts'
import { startWorker } from '../../src/start/worker.ts'
import { createFolder } from './folder.ts'

const CALLER = { tenantId: 'acme', projectId: 'web', subject: 'user:ada' }
const LOST = Buffer.alloc(32, 1)
const PRESENT = Buffer.alloc(32, 2)

/** A database with two secrets: one was encrypted with a lost key, the other one with the present key. */
async function prepare(): Promise<{ settingsWith: (...keys: readonly Buffer[]) => Settings }> {
  const database = await createDatabase()
  onTestFinished(() => database[Symbol.asyncDispose]())
  const db = createDb(database.pool)
  await new Secrets({ db, keys: [LOST] }).put(CALLER, 'old', 'value-of-old')
  await new Secrets({ db, keys: [PRESENT] }).put(CALLER, 'new', 'value-of-new')
  const settingsWith = (...keys: readonly Buffer[]): Settings =>
    readSettings(
      { CARILLON_SECRETS_KEY: keys.map((key) => key.toString('base64')).join(',') || undefined },
      { databaseUrl: database.url, dataDir: createFolder(), port: 0 },
    )
  return { settingsWith }
}

const starts = {
  everything: startEverything,
  'a worker': (settings: Settings, options: Parameters<typeof startEverything>[1]) =>
    startWorker(settings, { targetKinds: ['http'], metricsPort: null, ...options }),
}

/** The warnings that a start logs. */
async function warningsOf(what: keyof typeof starts, settings: Settings): Promise<string[]> {
  const lines: string[] = []
  const logger = createLogger({ logLevel: 'warn' }, { write: (line) => lines.push(line) })
  const service = await starts[what](settings, { logger })
  await service.stop()
  return lines
}

async function secretsCheck(settings: Settings): Promise<Check | undefined> {
  return (await examine(settings)).find(({ name }) => name === 'secrets')
}

test.each(['everything', 'a worker'] as const)(
  'starting %s warns once about secrets that no available key decrypts, with a remedy',
  async (what) => {
    const { settingsWith } = await prepare()

    const warnings = await warningsOf(what, settingsWith(PRESENT))

    expect(warnings.map((line) => JSON.parse(line) as unknown)).toMatchObject([
      {
        level: 'warn',
        service: 'secrets',
        error: {
          code: 'secrets_unavailable',
          message: expect.stringMatching(/got none that opens 1 of them: restore secrets\.key, .* comma/) as string,
        },
      },
    ])
    expect(warnings.join()).not.toMatch(/value-of/)
    expect(await warningsOf(what, settingsWith())).toMatchObject([expect.stringContaining('opens 2 of them')])
    expect(await warningsOf(what, settingsWith(PRESENT, LOST))).toEqual([])
  },
)

test('the doctor counts the secrets that no configured key decrypts', async () => {
  const { settingsWith } = await prepare()

  expect(await secretsCheck(settingsWith(PRESENT))).toMatchObject({ status: 'warning', detail: { unreadable: 1 } })
  expect(await secretsCheck(settingsWith())).toMatchObject({ status: 'warning', detail: { unreadable: 2 } })
  expect(await secretsCheck(settingsWith(PRESENT, LOST))).toMatchObject({ status: 'ok' })
})

test('the doctor creates no key for the embedded Postgres, and reports a key file that it cannot read', async () => {
  const dataDir = join(createFolder(), 'data')
  const settings = readSettings({}, { dataDir })
  const file = join(dataDir, 'secrets.key')
  await migrationsOf(settings).up()
  rmSync(file, { force: true })

  expect(await secretsCheck(settings)).toMatchObject({ status: 'ok', message: 'no secrets' })
  expect(existsSync(file)).toBe(false)
  openSecretsKeys(settings)
  expect(await secretsCheck(settings)).toMatchObject({ status: 'ok' })
  writeFileSync(file, 'half-a-key')
  const checks = await examine(settings)
  expect(checks).toContainEqual(expect.objectContaining({ name: 'schema', status: 'ok' }))
  expect(checks.at(-1)).toEqual({
    name: 'secrets',
    status: 'failed',
    message: `${file}: expected a key of 32 bytes in base64, got something else: restore the file from a backup, or set CARILLON_SECRETS_KEY`,
  })
})
