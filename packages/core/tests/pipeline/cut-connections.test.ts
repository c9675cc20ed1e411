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
/** Enough for whatever was under way when the connections broke to have come to its end. */
const FAILED_BEATS = 3

/** A worker in a process of its own, and what becomes of it. */
function startWorker(databaseUrl: string) {
  const script = fileURLToPath(new URL('../worker-process.ts', import.meta.url))
  const child = spawn(process.execPath, [script], {
    env: { ...process.env, DATABASE_URL: databaseUrl },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const told: string[] = []
  const errors: string[] = []
  let heard = Promise.withResolvers<void>()
  createInterface({ input: child.stdout }).on('line', (line) => {
    told.push(line)
    heard.resolve()
    heard = Promise.withResolvers()
  })
  child.stderr.on('data', (text: Buffer) => errors.push(text.toString()))
  const exited = once(child, 'exit').then(() => undefined)
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await exited
  })
  return {
    exited,
    /** Resolves once it has said this so often, or has ended. */
    whenTold: async (line: string, times = 1): Promise<void> => {
      while (told.filter((each) => each === line).length < times && child.exitCode === null) {
        await Promise.race([heard.promise, exited])
      }
    },
    fate: () =>
      child.exitCode === null
        ? 'lives'
        : `exited with ${child.exitCode}: ${/\w*Error: .*/.exec(errors.join(''))?.[0] ?? 'no error'}`,
  }
}

/** Asks until there is an answer, or the worker has ended. */
async function until({ pool }: TestDatabase, exited: Promise<void>, text: string): Promise<void> {
  const ended = exited.then(() => 'ended' as const)
  while ((await Promise.race([ended, pool.query(text).then(({ rowCount }) => rowCount)])) === 0) {
    // What is waited for happens in another process, so this polls, with a pause on the server's side.
    await pool.query('select pg_sleep(0.02)')
  }
}

test('a worker whose connections all break while a run waits for it lives, and beats again once Postgres is back', async () => {
  await using database = await createDatabase()
  await using gate = await startGate(database.url)
  const targets = new Map<string, Target>([['test', new ScriptedTarget()]])
  const scheduler = new Scheduler({ db: createDb(database.pool), clock: systemClock, targets })
  const worker = startWorker(gate.url)
  await worker.whenTold('started')
  for (const name of ['held', 'waits']) {
    const { id } = await scheduler.create(CALLER, { name, cadence: YEARLY, target: { kind: 'test' } })
    await scheduler.runNow(CALLER, id)
    await worker.whenTold('called')
  }
  // The worker is full, so the second run waits for it.
  await until(database, worker.exited, `select from carillon.runs where state = 'pending'`)

  gate.shut()
  await worker.whenTold('failed heartbeat', FAILED_BEATS)
  const { rows } = await database.pool.query<{ at: string }>('select now()::text as at')
  gate.open()
  await until(database, worker.exited, `select from carillon.workers where heartbeat_at > '${rows[0]?.at}'`)

  expect(worker.fate()).toBe('lives')
})
