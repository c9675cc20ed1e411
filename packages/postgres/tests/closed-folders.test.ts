import { once } from 'node:events'
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'

import { describe, expect, test } from 'vitest'

import { startPostgres } from '../src/index.ts'
import { startInChild } from './child.ts'
import { canBecomeOthers, createFolder, isRoot } from './folder.ts'
import { install } from './installed.ts'
import { query } from './query.ts'

const settings = { fsync: 'off' }
/** `daemon` exists on every system. */
const DAEMON = { uid: 1, gid: 1 }

/** A folder that only its owner may enter, like root's home on most servers. */
function createClosedFolder(): string {
  const folder = createFolder()
  chmodSync(folder, 0o700)
  return folder
}

describe.runIf(isRoot)('root in a folder that is closed to other users', () => {
  test('serves data in the folder, keeps it through stops and kills, and opens no folder to others', async () => {
    const folder = createClosedFolder()
    const dataDir = join(folder, 'deeper', 'data')

    const first = await startPostgres({ dataDir, settings })
    await query(first.url, `create table kept as select 'data' as content`)
    await first.stop()
    const second = await startPostgres({ dataDir, settings })
    process.kill(Number.parseInt(readFileSync(join(dataDir, 'postmaster.pid'), 'utf8'), 10), 'SIGKILL')
    await second.stop()
    await using third = await startPostgres({ dataDir, settings })

    expect(await query(third.url, 'select content from kept')).toEqual({ content: 'data' })
    expect(statSync(folder).mode & 0o777).toBe(0o700)
    expect(statSync(dataDir)).toMatchObject({ uid: 65_534 })
  })

  test('runs a copy of the program installed in the folder, reports where and why, and removes it at the stop', async () => {
    const folder = createClosedFolder()
    const [dataDir, script] = [join(folder, 'data'), install(folder)]
    const { child, said: url, copied } = await startInChild(dataDir, { script })
    await query(url, `create table kept as select 'data' as content`)
    const { folder: copy = '' } = copied ?? {}
    const isThere = existsSync(copy)
    child.stdin?.end()
    await once(child, 'exit')

    expect(copied).toEqual({
      folder: expect.stringMatching(/^\/var\/lib\/carillon-postgres\/[0-9a-f]{16}$/) as string,
      reason: `Postgres runs as user 65534, which may not enter ${folder}`,
    })
    expect([isThere, existsSync(copy)]).toEqual([true, false])
    expect(statSync(folder).mode & 0o777).toBe(0o700)
  })

  test('restarts a killed server, also from a new copy if its copy was removed', async () => {
    const folder = createClosedFolder()
    const [dataDir, script] = [join(folder, 'data'), install(folder)]
    const { child, said: url, copied } = await startInChild(dataDir, { script })
    const { folder: copy = '' } = copied ?? {}
    await query(url, `create table kept as select 'data' as content`)
    const contents: unknown[] = []

    for (const isCopyRemoved of [false, true]) {
      if (isCopyRemoved) rmSync(copy, { recursive: true })
      process.kill(Number.parseInt(readFileSync(join(dataDir, 'postmaster.pid'), 'utf8'), 10), 'SIGKILL')
      await once(createInterface({ input: child.stdout as Readable }), 'line')
      contents.push(await query(url, 'select content from kept'))
    }
    child.stdin?.end()
    await once(child, 'exit')

    expect(contents).toEqual([{ content: 'data' }, { content: 'data' }])
    expect(existsSync(copy)).toBe(false)
    expect(statSync(folder).mode & 0o777).toBe(0o700)
  })

  test('reuses the copy of a killed process, and removes it if its data is gone', async () => {
    const folder = createClosedFolder()
    const [dataDir, script] = [join(folder, 'data'), install(folder)]
    const killed = await startInChild(dataDir, { script })
    const { folder: copy = '' } = killed.copied ?? {}
    killed.child.kill('SIGKILL')
    const madeAt = statSync(copy).ctimeMs

    const next = await startInChild(dataDir, { script })
    const found = [next.copied?.folder, statSync(copy).ctimeMs]
    next.child.kill('SIGKILL')
    await once(next.child, 'exit')
    const elsewhere = await startInChild(join(folder, 'other'), { script })
    const withData = existsSync(copy)
    elsewhere.child.kill('SIGKILL')
    await once(elsewhere.child, 'exit')
    rmSync(dataDir, { recursive: true, force: true, maxRetries: 20 })
    const last = await startInChild(join(folder, 'other'), { script })
    last.child.stdin?.end()
    await once(last.child, 'exit')

    expect(found).toEqual([copy, madeAt])
    expect({ withData, withoutData: existsSync(copy) }).toEqual({ withData: true, withoutData: false })
  })
})

describe.runIf(canBecomeOthers)('another user', () => {
  test('starts a program that root installed read-only, from a copy in its own data directory', async () => {
    const folder = createFolder()
    chmodSync(folder, 0o755)
    const script = install(folder)
    const mine = createFolder()
    const dataDir = join(mine, 'data')
    mkdirSync(dataDir)
    for (const path of [mine, dataDir]) chownSync(path, DAEMON.uid, DAEMON.gid)

    const { child, said: url, copied } = await startInChild(dataDir, { script, user: DAEMON })
    const one = await query(url, 'select 1 as one')
    child.stdin?.end()
    await once(child, 'exit')

    expect(one).toEqual({ one: 1 })
    expect(copied?.folder).toBe(join(dataDir, '.carillon-program'))
    expect(copied?.reason).toMatch(/cannot be written to$/)
    expect(existsSync(join(dataDir, '.carillon-program'))).toBe(false)
  })
})
