import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { findRunningPostgres, startPostgres } from '../src/index.ts'
import { startInChild } from './child.ts'
import { createFolder, isRoot } from './folder.ts'
import { query } from './query.ts'

const settings = { fsync: 'off' }

test('a server is found by its folder while it runs, whichever process started it, and not after its stop', async () => {
  const dataDir = join(createFolder(), 'data')
  expect(findRunningPostgres(dataDir)).toBeUndefined()
  const { child, said: url } = await startInChild(dataDir)

  const found = findRunningPostgres(dataDir)
  expect(found).toEqual({ url, port: Number(new URL(url).port) })
  expect(await query(url, 'select 1 as one')).toEqual({ one: 1 })
  const lock = readFileSync(join(dataDir, 'postmaster.pid'), 'utf8')
  child.stdin?.end()
  await new Promise((resolve) => child.on('exit', resolve))

  expect(findRunningPostgres(dataDir)).toBeUndefined()
  // The lock of a killed server, with a process id that another process has now.
  writeFileSync(join(dataDir, 'postmaster.pid'), lock.replace(/^\d+/, String(process.pid)))
  expect(findRunningPostgres(dataDir)).toBeUndefined()
})

test('a server that is stopping or was killed is not found', async () => {
  const dataDir = join(createFolder(), 'data')
  const postgres = await startPostgres({ dataDir, settings })
  const lockFile = join(dataDir, 'postmaster.pid')
  const lock = readFileSync(lockFile, 'utf8')
  expect(findRunningPostgres(dataDir)).toMatchObject({ port: postgres.port })

  writeFileSync(lockFile, lock.replace(/ready +|starting/, 'stopping'))
  expect(findRunningPostgres(dataDir)).toBeUndefined()
  writeFileSync(lockFile, lock)

  process.kill(Number.parseInt(lock, 10), 'SIGKILL')
  await postgres.ended
  expect(findRunningPostgres(dataDir)).toBeUndefined()
  await postgres.stop()
})

test('a folder that is a file, or that holds no database, has no server', () => {
  const folder = createFolder()
  writeFileSync(join(folder, 'file'), '')
  mkdirSync(join(folder, 'empty'))

  expect(findRunningPostgres(join(folder, 'file'))).toBeUndefined()
  expect(findRunningPostgres(join(folder, 'empty'))).toBeUndefined()
})

test.runIf(isRoot)('a user who may not read the folder gets an error that says so', async () => {
  const dataDir = join(createFolder(), 'data')
  await using postgres = await startPostgres({ dataDir, settings })

  const lookAsDaemon = (): unknown => {
    process.seteuid?.(1)
    try {
      return findRunningPostgres(dataDir)
    } finally {
      process.seteuid?.(0)
    }
  }

  expect(postgres.port).toBeGreaterThan(0)
  expect(lookAsDaemon).toThrow(`expected a data directory that this user may read at ${dataDir}, got the error EACCES`)
})
