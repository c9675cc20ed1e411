import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'

import { createClient } from '@carillon/api'
import { expect, onTestFinished, test } from 'vitest'

import { commandOf, findFreePort, NpmStart, processesWith } from './npm-start.ts'

/** The ways to end `npm start`. After SIGTERM and SIGINT it stops in order. After SIGKILL the watchdogs stop the rest. */
const ENDS = [
  { signal: 'SIGTERM', to: 'npm' },
  { signal: 'SIGTERM', to: 'group' },
  { signal: 'SIGINT', to: 'npm' },
  { signal: 'SIGINT', to: 'group' },
  { signal: 'SIGKILL', to: 'npm' },
  { signal: 'SIGKILL', to: 'group' },
] as const

/** `npm run test:starts` makes 100 starts. */
const STARTS = Number(process.env['STARTS'] ?? ENDS.length)
const SEED = Number(process.env['STARTS_SEED'] ?? Math.floor(Math.random() * 2 ** 31))

test.runIf(process.platform === 'linux')(
  `${STARTS} starts that end by signals and kills all succeed, keep the data and leave no process (seed ${SEED})`,
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
      // After a kill of the whole group, some processes may still be ending.
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

      // npm exits last, after the service and its Postgres. A killed npm cannot wait for them, so they stop by themselves a moment later.
      const left = processesWith(dataDir).filter((pid) => !before.has(pid))
      if (end.signal !== 'SIGKILL') expect({ n, end, left: left.map(commandOf) }).toEqual({ n, end, left: [] })
      // After a kill of the whole group, the next start begins while the old Postgres may still be writing its data.
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
  /** Sends the signal during the start, once this many processes run. Undefined: once the service reports that it is ready. */
  readonly atProcesses: number | undefined
}

/** Every way comes once before any comes again, in an order that the seed determines. Every third one comes during the start. */
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

/** No event reports the end of a process that is not our child, so this polls. The test's own time limit is the bound. */
async function untilNoneIsLeft(dataDir: string): Promise<void> {
  while (processesWith(dataDir).length > 0) await setImmediate()
}
