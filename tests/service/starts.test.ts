import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'

import { createClient } from '@carillon/api'
import { expect, onTestFinished, test } from 'vitest'

import { commandOf, findFreePort, NpmStart, processesWith } from './npm-start.ts'

/** Ways to end `npm start`. SIGTERM and SIGINT end it in order; SIGKILL leaves that to the guards. */
const ENDS = [
  { signal: 'SIGTERM', to: 'npm' },
  { signal: 'SIGTERM', to: 'group' },
  { signal: 'SIGINT', to: 'npm' },
  { signal: 'SIGINT', to: 'group' },
  { signal: 'SIGKILL', to: 'npm' },
  { signal: 'SIGKILL', to: 'group' },
] as const

/** `npm run test:starts` does 100. */
const STARTS = Number(process.env['STARTS'] ?? ENDS.length)
const SEED = Number(process.env['STARTS_SEED'] ?? Math.floor(Math.random() * 2 ** 31))

test.runIf(process.platform === 'linux')(
  `${STARTS} starts that are ended by signals and kills all start, keep the data and leave no process (seed ${SEED})`,
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'carillon-starts-'))
    chmodSync(folder, 0o700)
    const dataDir = join(folder, '.carillon')
    const port = await findFreePort()
    const env = { CARILLON_DATA_DIR: dataDir, CARILLON_PORT: String(port) }
    onTestFinished(async () => {
      for (const pid of processesWith(dataDir)) process.kill(pid, 'SIGKILL')
      await untilNoneIsLeft(dataDir)
      rmSync(folder, { recursive: true, force: true })
    })

    let isMade = false
    for (const [n, end] of plannedEnds(STARTS, SEED).entries()) {
      // A kill of the whole group may have left some that are still ending.
      const before = new Set(processesWith(dataDir))
      const service = new NpmStart({ env })
      if (end.atProcesses === undefined) {
        await service.said('Try this next')
        const key = readFileSync(join(dataDir, 'admin.key'), 'utf8').trim()
        const client = createClient(`http://127.0.0.1:${port}`, key)
        if (!isMade) await client.schedules.create({ name: 'Kept', ...YEARLY })
        isMade = true
        const { items } = await client.schedules.list()
        expect({ n, end, names: items.map(({ name }) => name) }).toEqual({ n, end, names: ['Kept'] })
      } else await untilSoManyRun(dataDir, before.size + end.atProcesses, service)
      service.signal(end.signal, end.to)
      await service.exited

      // npm ends last, after the service and its Postgres. Killed, it cannot wait; then they notice by themselves.
      const left = processesWith(dataDir).filter((pid) => !before.has(pid))
      if (end.signal !== 'SIGKILL') expect({ n, end, left: left.map(commandOf) }).toEqual({ n, end, left: [] })
      // After a kill of the whole group the next start begins while Postgres may still be writing what is dirty.
      else if (end.to === 'npm') await untilNoneIsLeft(dataDir)
    }
    await untilNoneIsLeft(dataDir)
  },
  STARTS * 30_000,
)

const YEARLY = {
  cadence: { kind: 'cron', expression: '@yearly' },
  target: { kind: 'http', url: 'http://127.0.0.1:9/' },
} as const

interface End {
  readonly signal: NodeJS.Signals
  readonly to: 'npm' | 'group'
  /** Comes in the middle of the start, once so many processes run; undefined: once the service says that it is ready. */
  readonly atProcesses: number | undefined
}

/** Every way once before any comes again, in an order that the seed decides. Every third comes in the middle of a start. */
function plannedEnds(count: number, seed: number): End[] {
  let state = seed
  const random = (): number => (state = (state * 1_103_515_245 + 12_345) % 2 ** 31) / 2 ** 31
  const rounds = Array.from({ length: Math.ceil(count / ENDS.length) }, () =>
    ENDS.map((end) => ({ ...end, rank: random() })).toSorted((a, b) => a.rank - b.rank),
  )
  return rounds
    .flat()
    .slice(0, count)
    .map(({ signal, to }, n) => ({ signal, to, atProcesses: n % 3 === 0 ? 1 + Math.floor(random() * 8) : undefined }))
}

async function untilSoManyRun(dataDir: string, count: number, service: NpmStart): Promise<void> {
  const isOver = (): boolean =>
    service.child.exitCode !== null || service.lines.some((line) => line.includes('Try this'))
  while (processesWith(dataDir).length < count && !isOver()) await setImmediate()
}

/** Nothing tells of a process that is not ours; each look is a read of the process table, and the test's limit is the bound. */
async function untilNoneIsLeft(dataDir: string): Promise<void> {
  while (processesWith(dataDir).length > 0) await setImmediate()
}
