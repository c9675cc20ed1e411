import { chownSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { startPostgres } from '../src/index.ts'
import { startInChild } from './child.ts'
import { canBecomeOthers, createFolder } from './folder.ts'

test('a directory that cannot be created or written to is rejected', async () => {
  const folder = createFolder()
  writeFileSync(join(folder, 'file'), '')
  const dataDir = join(folder, 'file', 'data')

  await expect(startPostgres({ dataDir })).rejects.toMatchObject({
    code: 'directory_unwritable',
    message: `expected a data directory that this user may write to at ${dataDir}, got the error ENOTDIR`,
  })
})

test.runIf(canBecomeOthers)('the error names a directory that an ordinary user may not write to', async () => {
  const dataDir = join(createFolder(), 'data')

  const { said } = await startInChild(dataDir, { user: { uid: 12_345, gid: 12_345 } })

  expect(said).toBe(
    `PostgresError: expected a data directory that this user may write to at ${dataDir}, got the error EACCES`,
  )
})

test.runIf(canBecomeOthers)(
  'a user without a name gets an error that says so, and root then runs Postgres as another user',
  async () => {
    const folder = createFolder()
    chownSync(folder, 12_345, 12_345)
    const dataDir = join(folder, 'data')

    const { said } = await startInChild(dataDir, { user: { uid: 12_345, gid: 12_345 } })
    rmSync(dataDir, { recursive: true })
    await using postgres = await startPostgres({ dataDir, settings: { fsync: 'off' } })

    expect(said).toContain('user 12345 has no name on this system')
    expect(postgres.port).toBeGreaterThan(0)
    expect(statSync(dataDir).uid).toBe(65_534)
  },
)

test('a directory with other files is rejected and not changed', async () => {
  const dataDir = createFolder()
  writeFileSync(join(dataDir, 'thesis.txt'), '')

  await expect(startPostgres({ dataDir })).rejects.toMatchObject({
    code: 'directory_foreign',
    message: `expected an empty folder or a Postgres database in ${dataDir}, got other files: choose another data directory`,
  })
})

test('a database of another major version is rejected', async () => {
  const dataDir = createFolder()
  mkdirSync(join(dataDir, 'base'))
  writeFileSync(join(dataDir, 'PG_VERSION'), '15\n')

  await expect(startPostgres({ dataDir })).rejects.toMatchObject({
    code: 'wrong_version',
    message: expect.stringContaining(
      `expected a database of Postgres 18 in ${dataDir}, got one of Postgres 15`,
    ) as string,
  })
})

test('an unknown setting is rejected with the message of Postgres', async () => {
  const dataDir = join(createFolder(), 'data')

  await expect(startPostgres({ dataDir, settings: { fsync: 'off', no_such_setting: '1' } })).rejects.toMatchObject({
    code: 'start_failed',
    message: `Postgres did not start on ${dataDir}: unrecognized configuration parameter "no_such_setting"`,
  })
})
