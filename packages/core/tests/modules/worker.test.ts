import { setImmediate } from 'node:timers/promises'

import { expect, test } from 'vitest'

import { createDb } from '../../src/db/database.ts'
import { migrate } from '../../src/db/migrate.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { Events } from '../../src/kernel/events.ts'
import { PeriodicService } from '../../src/kernel/service.ts'
import { loadModules } from '../../src/modules/registry.ts'
import type { ModuleParts } from '../../src/ports/module.ts'
import { Scheduler } from '../../src/scheduler.ts'
import { Worker } from '../../src/worker.ts'
import { createDatabase } from '../database.ts'
import { CALLER } from '../pipeline.ts'
import { manifestOf, NO_DEPS, targetOf } from './made-up-module.ts'
import { ACCOUNTS, migrationsFolder } from './migrations-folder.ts'

const EVENTUALLY = { cadence: { kind: 'once', at: '2099-01-01T00:00:00Z' } }
const WORKER = { kinds: ['billing_call'], operations: false } as const

class Ticks extends PeriodicService<number> {
  override readonly name = 'billing ticks'
  ticks = 0
  readonly ticked = Promise.withResolvers<void>()

  constructor(clock = systemClock) {
    super({ clock, events: new Events() }, 60_000)
  }

  override runOnce(): Promise<number> {
    this.ticks += 1
    this.ticked.resolve()
    return Promise.resolve(this.ticks)
  }
}

test('a worker serves the kinds of its modules beside its own targets, and runs their services under their names', async () => {
  await using database = await createDatabase()
  const ticks = new Ticks()
  const sliced = Promise.withResolvers<void>()
  const looked = Promise.withResolvers<void>()
  const parts: ModuleParts = {
    targets: [targetOf('billing_call')],
    services: [
      { runsIn: 'each', service: ticks },
      {
        runsIn: 'one',
        name: 'billing sweep',
        slice: () => (sliced.resolve(), Promise.resolve({ cursor: null, restMs: 60_000 })),
      },
    ],
    checks: [{ name: 'accounts', look: () => (looked.resolve(), Promise.resolve({ findings: [], next: null })) }],
  }
  const loaded = await loadModules({
    manifests: [manifestOf('billing', {}, () => parts)],
    needs: WORKER,
    deps: NO_DEPS,
  })
  const worker = new Worker({ databaseUrl: database.url, targets: [targetOf('own')], modules: loaded.modules })
  await worker.start()

  await Promise.all([ticks.ticked.promise, sliced.promise, looked.promise])
  const { rows } = await database.pool.query<{ kinds: string[] }>('select target_kinds as kinds from carillon.workers')
  await worker.stop()
  const { ticks: before } = ticks
  await setImmediate()

  expect(rows.map(({ kinds }) => kinds.toSorted())).toEqual([['billing_call', 'own']])
  expect(worker.serviceNames).toEqual(expect.arrayContaining(['billing ticks', 'billing sweep', 'billing checks']))
  expect(ticks.ticks).toBe(before)
})

test('a worker does not start while the database lacks a migration or a reason of one of its modules', async () => {
  await using database = await createDatabase()
  const migrations = migrationsFolder({ '0001_accounts': [ACCOUNTS, 'drop table billing_accounts'] })
  const manifest = manifestOf('billing', { migrations, reasons: { no_credit: 'the account has no credit' } })
  const { modules } = await loadModules({ manifests: [manifest], needs: WORKER, deps: NO_DEPS })
  await using worker = new Worker({ databaseUrl: database.url, modules })

  await expect(worker.start()).rejects.toMatchObject({
    code: 'schema_outdated',
    message: expect.stringContaining('lacks billing/reason no_credit, billing/0001_accounts') as string,
  })
})

test('a hook refuses a run for a reason of its module, which a migration has added to the database', async () => {
  await using database = await createDatabase()
  const reasons = { no_credit: 'the account has no credit' }
  const target = {
    ...targetOf('billing_call'),
    admit: () => Promise.resolve([{ kind: 'refused' as const, reason: 'no_credit' }]),
  }
  const manifest = manifestOf('billing', { reasons }, () => ({ targets: [target] }))
  await migrate(database.pool, { modules: [manifest] })
  const { modules } = await loadModules({ manifests: [manifest], needs: WORKER, deps: NO_DEPS })
  const scheduler = new Scheduler({ db: createDb(database.pool), targets: new Map([[target.kind, target]]) })
  await using worker = new Worker({ databaseUrl: database.url, modules })
  const skipped = Promise.withResolvers<string>()
  worker.events.on('slot.skipped', ({ reason }) => skipped.resolve(reason))
  await worker.start()

  const { id } = await scheduler.runNow(
    CALLER,
    (await scheduler.create(CALLER, { ...EVENTUALLY, name: 'paid', target: { kind: 'billing_call' } })).id,
  )

  expect(await skipped.promise).toBe('no_credit')
  expect(await scheduler.getRun(CALLER, id)).toMatchObject({ state: 'skipped', reason: 'no_credit' })
})
