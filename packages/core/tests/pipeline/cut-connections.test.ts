import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

import { expect, onTestFinished, test } from 'vitest'

import { createDb } from '../../src/db/database.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import type { Target } from '../../src/ports/target.ts'
import { Scheduler } from '../../src/scheduler.ts'
import { createDatabase, type TestDatabase } from '../database.ts'
import { startGate } from '../gate.ts'
import { CALLER } from '../pipeline.ts'
import { ScriptedTarget } from '../scripted-target.ts'

const YEARLY = { kind: 'cron', expression: '0 0 1 1 *', timezone: 'UTC' }
/** After this many failed heartbeats everything that was under way when the connections broke has ended. */
const FAILED_BEATS = 3

/** Starts a worker in a process of its own and reads its output. */
function startWorker(databaseUrl: string) {
  const script = fileURLToPath(new URL('../worker-process.ts', import.meta.url))
  const child = spawn(process.execPath, [script], {
    env: { ...process.env, DATABASE_URL: databaseUrl },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const lines: string[] = []
  const errors: string[] = []
  let lineRead = Promise.withResolvers<void>()
  createInterface({ input: child.stdout }).on('line', (line) => {
    lines.push(line)
    lineRead.resolve()
    lineRead = Promise.withResolvers()
  })
  child.stderr.on('data', (text: Buffer) => errors.push(text.toString()))
  const exited = once(child, 'exit').then(() => undefined)
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await exited
  })
  return {
    exited,
    /** Resolves once the worker has printed this line so many times, or has ended. */
    whenPrinted: async (line: string, times = 1): Promise<void> => {
      while (lines.filter((each) => each === line).length < times && child.exitCode === null) {
        await Promise.race([lineRead.promise, exited])
      }
    },
    fate: () =>
      child.exitCode === null
        ? 'lives'
        : `exited with ${child.exitCode}: ${/\w*Error: .*/.exec(errors.join(''))?.[0] ?? 'no error'}`,
  }
}

/** Polls until the query returns a row, or the worker has ended. */
async function until({ pool }: TestDatabase, exited: Promise<void>, text: string): Promise<void> {
  const ended = exited.then(() => 'ended' as const)
  while ((await Promise.race([ended, pool.query(text).then(({ rowCount }) => rowCount)])) === 0) {
    // The change happens in another process, so this polls, with a pause on the server's side.
    await pool.query('select pg_sleep(0.02)')
  }
}

test('a worker survives when all its connections break while a run waits for it, and beats again once Postgres is back', async () => {
  await using database = await createDatabase()
  await using gate = await startGate(database.url)
  const targets = new Map<string, Target>([['test', new ScriptedTarget()]])
  const scheduler = new Scheduler({ db: createDb(database.pool), clock: systemClock, targets })
  const worker = startWorker(gate.url)
  await worker.whenPrinted('started')
  for (const name of ['held', 'waits']) {
    const { id } = await scheduler.create(CALLER, { name, cadence: YEARLY, target: { kind: 'test' } })
    await scheduler.runNow(CALLER, id)
    await worker.whenPrinted('called')
  }
  // The worker is full, so the second run waits for it.
  await until(database, worker.exited, `select from carillon.runs where state = 'pending'`)

  gate.shut()
  await worker.whenPrinted('failed heartbeat', FAILED_BEATS)
  const { rows } = await database.pool.query<{ at: string }>('select now()::text as at')
  gate.open()
  await until(database, worker.exited, `select from carillon.workers where heartbeat_at > '${rows[0]?.at}'`)

  expect(worker.fate()).toBe('lives')
})
