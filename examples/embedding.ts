/**
 * The library inside an application with its own target kind: no HTTP, no second service. The application defines the callers and
 * the target; Carillon decides when to call it, and keeps the ledger.
 *
 * Run: `node examples/embedding.ts`
 */
import { createDb, Scheduler, Worker, type Target } from '@carillon/core'
import { z } from 'zod'

import { startTemporaryPostgres } from './temporary-postgres.ts'

interface ReminderSpec {
  readonly kind: 'reminder'
  readonly to: string
  readonly text: string
}

/** What a schedule can ask the application to do. */
const reminders: Target<ReminderSpec> = {
  kind: 'reminder',
  schema: z.strictObject({ kind: z.literal('reminder'), to: z.email(), text: z.string().min(1) }),
  policy: { retry: { maxAttempts: 3, baseSeconds: 1, capSeconds: 60 } },
  requiredScope: ({ to }) => `reminder:send:${to}`,
  timeoutMs: () => 10_000,
  dispatch: ({ spec, attempt, idempotencyKey }) => {
    // The first attempt meets a provider that is down.
    if (attempt === 1) {
      const error = { code: 'provider_down', message: 'the mail provider does not answer' }
      return Promise.resolve({ kind: 'failed', error, retryable: true })
    }
    process.stdout.write(`to ${spec.to}: ${spec.text} (${idempotencyKey.slice(0, 6)}…)\n`)
    return Promise.resolve({ kind: 'succeeded', result: { messageId: 'm-1' } })
  },
}

await using database = await startTemporaryPostgres()
const scheduler = new Scheduler({ db: createDb(database.pool), targets: new Map([[reminders.kind, reminders]]) })
await using worker = new Worker({ databaseUrl: database.url, targets: [reminders] })
await worker.start()

const alice = { tenantId: 'acme', projectId: 'garden', subject: 'user:alice' }
const over = new Promise<void>((resolve) => {
  worker.events.on('attempt.settled', ({ attempt, state }) => {
    process.stdout.write(`attempt ${attempt}: the run is ${state}\n`)
    if (state !== 'retrying') resolve()
  })
})
const { id } = await scheduler.create(alice, {
  name: 'Water the plants',
  cadence: { kind: 'once', at: new Date(Date.now() + 2000).toISOString() },
  target: { kind: 'reminder', to: 'alice@example.com', text: 'the plants are thirsty' },
})
await over

const [line] = await scheduler.listRuns(alice, id)
process.stdout.write(`ledger: ${line?.state ?? 'nothing'} after ${line?.attemptCount ?? 0} attempts\n`)

try {
  await scheduler.create(alice, { name: 'Nobody', cadence: { kind: 'once', at: 'soon' }, target: { kind: 'reminder' } })
} catch (error) {
  process.stdout.write(`refused: ${error instanceof Error ? error.message : String(error)}\n`)
}
