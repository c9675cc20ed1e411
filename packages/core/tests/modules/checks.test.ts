import { expect, test } from 'vitest'

import { ModuleChecks } from '../../src/audit/module-checks.ts'
import { Doctor } from '../../src/doctor/doctor.ts'
import type { Json } from '../../src/kernel/json.ts'
import type { ModuleCheck, ModuleFinding } from '../../src/ports/module.ts'
import { emptiedPipelines } from '../emptied-pipeline.ts'
import { ownLease } from '../own-lease.ts'
import { CALLER, type Pipeline } from '../pipeline.ts'
import { sql } from '../sql.ts'
import { TestAuditor } from '../test-auditor.ts'
import { manifestOf } from './made-up-module.ts'

const pipelineAt = emptiedPipelines()

const BELOW_ZERO: ModuleFinding = {
  kind: 'balance_negative',
  scope: { tenantId: CALLER.tenantId, projectId: CALLER.projectId },
  detail: 'account 7 has a balance of -1',
  remedy: 'correct it by hand',
}
const TEXT = 'billing accounts, balance_negative: account 7 has a balance of -1: correct it by hand'

/** A check that finds what `pages` hold, one page with each look. */
function checkOf(name: string, pages: readonly (readonly ModuleFinding[])[], looks: unknown[] = []): ModuleCheck {
  return {
    name,
    look: (_tx, after) => {
      looks.push(`${name} ${JSON.stringify(after)}`)
      const page = typeof after === 'number' ? after : 0
      return Promise.resolve({ findings: pages[page] ?? [], next: page + 1 < pages.length ? page + 1 : null })
    },
  }
}

function checksOf({ workerDb: db, clock, events }: Pipeline, first: ModuleCheck, ...rest: ModuleCheck[]): ModuleChecks {
  return new ModuleChecks({ db, clock, events, lease: ownLease() }, 'billing', [first, ...rest])
}

async function pass({ clock }: Pipeline, checks: ModuleChecks, looks: number): Promise<void> {
  for (let count = 0; count < looks; count += 1) {
    await checks.runOnce()
    clock.advance(15_000)
  }
}

test('the checks of a module are made one after the other, each to its end, a page with each look', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const looks: unknown[] = []
  const checks = checksOf(pipeline, checkOf('accounts', [[], []], looks), checkOf('lines', [[]], looks))

  await pass(pipeline, checks, 4)

  expect(looks).toEqual(['accounts null', 'accounts 1', 'lines null', 'accounts null'])
})

test('what a check finds is listed in its project, with the remedy, and counted by the latest audit', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const found: unknown[] = []
  pipeline.events.on('audit.found', (event) => found.push(event))

  await pass(pipeline, checksOf(pipeline, checkOf('accounts', [[BELOW_ZERO]])), 1)

  expect(await pipeline.scheduler.findings(CALLER)).toMatchObject([
    { kind: 'module_check', detail: TEXT, scheduleId: null, isRepaired: false },
  ])
  expect(await pipeline.scheduler.findings({ ...CALLER, tenantId: 'globex' })).toEqual([])
  expect(await pipeline.scheduler.latestAudit()).toMatchObject({ findings: 1 })
  expect(found).toEqual([{ findings: 1, repaired: 0 }])
})

test('a finding of no project is listed for the installation', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')

  await pass(pipeline, checksOf(pipeline, checkOf('accounts', [[{ ...BELOW_ZERO, scope: null }]])), 1)

  expect(await pipeline.scheduler.unownedFindings()).toMatchObject([{ kind: 'module_check', detail: TEXT }])
})

test('a fault that lasts is counted once until a full audit has ended, then once more, and listed once with its first instant', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { workerDb: db, clock, events, scheduler } = pipeline
  const foundAt = clock.instant
  const checks = checksOf(pipeline, checkOf('accounts', [[BELOW_ZERO]]))
  await pass(pipeline, checks, 3)
  expect(await scheduler.latestAudit()).toMatchObject({ findings: 1 })

  await new TestAuditor({ db, clock, events }).audit()
  expect(await scheduler.latestAudit()).toMatchObject({ findings: 0 })
  clock.advance(15_000)
  await pass(pipeline, checks, 2)

  expect(await scheduler.latestAudit()).toMatchObject({ findings: 1 })
  expect(await scheduler.findings(CALLER)).toMatchObject([{ detail: TEXT, foundAt }])
})

test('a check that writes is refused, and its findings are cut at a thousand', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const writing: ModuleCheck = {
    name: 'writing',
    look: async (tx) => {
      await sql`delete from carillon.audits`.execute(tx)
      return { findings: [], next: null }
    },
  }
  const many = Array.from({ length: 1001 }, (_, index) => ({ ...BELOW_ZERO, detail: String(index) }))

  await expect(checksOf(pipeline, writing).runOnce()).rejects.toThrow('read-only transaction')
  const [, other] = [await releaseTurns(pipeline), checksOf(pipeline, checkOf('accounts', [many]))]

  expect(await other.runOnce()).toEqual({ findings: 1000 })
})

async function releaseTurns({ db }: Pipeline): Promise<void> {
  await sql`delete from carillon.service_turns`.execute(db)
}

test('a check that returns no findings has failed, and a cursor of a check that is gone is forgotten', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const looks: unknown[] = []
  const broken = { name: 'accounts', look: () => Promise.resolve({}) } as unknown as ModuleCheck

  await expect(checksOf(pipeline, broken).runOnce()).rejects.toThrow(
    'expected findings of the check accounts, got none',
  )
  await releaseTurns(pipeline)
  const before = checksOf(pipeline, checkOf('accounts', [[], []], looks))
  await pass(pipeline, before, 1)
  await before.stop()
  await pass(pipeline, checksOf(pipeline, checkOf('lines', [[]], looks)), 1)

  expect(looks).toEqual(['accounts null', 'lines null'])
})

test('the doctor makes the checks of modules, and reports what they find or why they cannot be made', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { database, clock } = pipeline
  const examine = async (...checks: ModuleCheck[]) => {
    const modules = [
      { manifest: manifestOf('billing'), parts: { checks } },
      { manifest: manifestOf('graphs'), parts: {} },
    ]
    const found = await new Doctor({ pool: database.pool, clock, machineNow: () => clock.instant, modules }).examine()
    return found.filter(({ name }) => name.startsWith('module'))
  }
  const endless: ModuleCheck = {
    name: 'endless',
    look: (_tx, after: Json) => Promise.resolve({ findings: [], next: Number(after) + 1 }),
  }

  expect(await examine(checkOf('accounts', [[]]), endless)).toMatchObject([
    { name: 'module billing', status: 'ok', message: 'accounts, endless: nothing found' },
  ])
  expect(await examine(checkOf('accounts', [[], [BELOW_ZERO]]))).toMatchObject([
    { name: 'module billing', status: 'failed', message: `${TEXT} (in acme/web)` },
  ])
  expect(await examine({ name: 'accounts', look: () => Promise.reject(new Error('no such table')) })).toMatchObject([
    { name: 'module billing', status: 'failed', message: 'could not be checked: no such table' },
  ])
})
