import {
  BuiltInSecretStore,
  CarillonError,
  createDb,
  Doctor,
  systemClock,
  type Events,
  type SecretStore,
} from '@carillon/core'

import { endPool, openPool, type Pool } from './database.ts'
import type { StartUp } from './start-up.ts'

interface WorkerSecretsParts {
  readonly url: string
  /** Null: none can be opened. */
  readonly keys: readonly Buffer[] | null
  readonly events: Events
}

/** A secret is read for each attempt that needs one, by its key. */
const SECRETS_CONNECTIONS = 2

/** The secrets of schedules for the targets of a worker, over connections with the rights of a worker and no others (I9). */
export async function openWorkerSecrets(
  start: StartUp,
  { url, keys, events }: WorkerSecretsParts,
): Promise<SecretStore> {
  const pool = await openPool({
    url,
    applicationName: 'carillon secrets',
    role: 'carillon_worker',
    maxConnections: SECRETS_CONNECTIONS,
    onIdleError: (error) => events.emit('service.failed', { service: 'pool', error }),
  })
  start.defer(() => endPool(pool, systemClock))
  await warnOfUnreadable(pool, { keys, events })
  return new BuiltInSecretStore({ db: createDb(pool), keys })
}

/**
 * Without this a key that was lost, and made anew, would show only in runs that wait for their secret. Here and not in a server:
 * whoever acts for one project at a time cannot count those of all.
 */
async function warnOfUnreadable(pool: Pool, { keys, events }: Omit<WorkerSecretsParts, 'url'>): Promise<void> {
  const { status, message } = await new Doctor({ pool, keys }).examineSecrets()
  if (status === 'ok') return
  events.emit('service.failed', { service: 'secrets', error: new CarillonError('secrets_unavailable', message) })
}

/** For a server, which checks what schedules say and calls nothing. */
export const SECRETS_OF_WORKERS: SecretStore = {
  resolve: () => Promise.reject(new Error('expected a worker to ask for a secret, got a server')),
}
