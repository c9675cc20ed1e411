import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { createDatabase } from '@carillon/core/testing'
import { describe, expect, onTestFinished, test } from 'vitest'

import { CarillonProcess } from '../cli/carillon-process.ts'

const ADMIN_KEY = 'the-key-of-this-installation'
/** Makes a process leave a rejection unhandled, or an exception uncaught, when a test signals it. */
const FAULTS = `
  process.on('SIGUSR2', () => void Promise.reject(new Error('nobody awaits this')))
  process.on('SIGQUIT', () => { throw new Error('nobody catches this') })
  setInterval(() => undefined, 1000).unref()`
const FAULTY = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(FAULTS)}` }

async function start(args: readonly string[]) {
  const database = await createDatabase()
  const folder = mkdtempSync(join(tmpdir(), 'carillon-rejections-'))
  chmodSync(folder, 0o711)
  const env = { ...FAULTY, DATABASE_URL: database.url, CARILLON_ADMIN_KEY: ADMIN_KEY }
  const service = new CarillonProcess(args, { cwd: folder, env })
  onTestFinished(async () => {
    await service.stop('SIGKILL')
    await database[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true })
  })
  const [url = ''] = /http:\/\/127\.0\.0\.1:\d+/.exec(await service.shown(/http:\/\/127\.0\.0\.1:\d+/)) ?? []
  return { service, url }
}

async function countedBy(url: string): Promise<string | undefined> {
  const text = await (await fetch(`${url}/metrics`)).text()
  return /^process_unhandled_rejections_total (\d+)$/m.exec(text)?.[1]
}

describe.runIf(process.platform === 'linux')('an unhandled rejection', () => {
  test.each([
    ['up', '--port', '0'],
    ['server', '--port', '0'],
    ['worker', '--metrics-port', '0'],
  ])('is logged and counted by carillon %s, which continues (I13)', async (...args) => {
    const { service, url } = await start(args)

    const before = await countedBy(url)
    service.child.kill('SIGUSR2')
    const log = await service.shown(/process\.unhandled_rejection/, 'stderr')
    const [after, ready] = [await countedBy(url), await fetch(`${url}/readyz`)]
    const { exitCode } = await service.stop('SIGTERM')

    expect([before, after, ready.status, exitCode]).toEqual(['0', '1', 200, 0])
    const line = log.split('\n').find((text) => text.includes('process.unhandled_rejection')) ?? ''
    expect(JSON.parse(line)).toMatchObject({
      level: 'error',
      error: { message: 'nobody awaits this', stack: expect.arrayContaining([expect.any(String)]) as unknown },
    })
  })

  test('ends every other command, as in Node', async () => {
    const { url } = await start(['server', '--port', '0'])
    const events = new CarillonProcess(['events'], {
      cwd: tmpdir(),
      env: { ...FAULTY, CARILLON_URL: url, CARILLON_API_KEY: ADMIN_KEY },
    })
    await events.shown(/following/, 'stderr')
    events.child.kill('SIGUSR2')

    expect(await events.ended).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('nobody awaits this') as string,
    })
  })
})

test.runIf(process.platform === 'linux')(
  'an uncaught exception is logged and ends a worker with exit code 1',
  async () => {
    const { service } = await start(['worker', '--metrics-port', '0'])

    service.child.kill('SIGQUIT')
    const { exitCode, stderr } = await service.ended

    expect(exitCode).toBe(1)
    expect(stderr).toMatch(/"event":"process\.uncaught_exception".*nobody catches this/)
  },
)
