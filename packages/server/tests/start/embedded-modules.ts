import {
  createDb,
  createPool,
  Events,
  loadModules,
  migrate,
  sharedDeps,
  systemClock,
  Worker,
  workerRole,
  type OutboundClient,
  type SecretStore,
} from '@carillon/core'
import { createNoopMeter } from '@opentelemetry/api'

import { module } from './tally-module.ts'

const manifests = [module]

/** A program that embeds the library and serves a module's kind. Returns the worker, which has started, and stops it with the pools. */
export async function startEmbedded(databaseUrl: string): Promise<{ worker: Worker; stop: () => Promise<void> }> {
  const events = new Events()
  const meter = createNoopMeter()
  const secrets: SecretStore = { resolve: () => Promise.reject(new Error('expected no secrets, got one')) }
  const outbound: OutboundClient = {
    send: () => Promise.resolve({ kind: 'aborted' }),
    refusalOf: () => undefined,
  }
  const pool = createPool({ connectionString: databaseUrl })
  const workerPool = createPool({ connectionString: databaseUrl, role: workerRole() })
  const db = createDb(workerPool)

  await migrate(pool, { modules: manifests })
  const deps = sharedDeps({ worker: db }, { clock: systemClock, events, meter, secrets, outbound })
  const loaded = await loadModules({ manifests, needs: { kinds: ['tally'], operations: false }, deps })
  const worker = new Worker({ databaseUrl, modules: loaded.modules })

  await worker.start()
  const stop = async (): Promise<void> => {
    await worker.stop()
    await loaded.close()
    await Promise.all([pool.end(), workerPool.end()])
  }
  return { worker, stop }
}
