import { MODULE_PORT, type ModuleManifest, type Target } from '@carillon/core'
import { z } from 'zod'

/** The `target` of a schedule, as a caller writes it. Carillon stores what the schema returns. */
const spec = z.strictObject({
  kind: z.literal('greeting'),
  to: z.string({ error: 'expected a name' }).min(1, { error: 'expected a name' }),
})

const target: Target<z.infer<typeof spec>> = {
  kind: 'greeting',
  title: 'An example of a kind',
  example: { kind: 'greeting', to: 'Ada' },
  scopePattern: 'greeting:dispatch:<to>',
  schema: spec,
  // What the policy of a schedule falls back to.
  policy: { retry: { maxAttempts: 3, baseSeconds: 5, capSeconds: 60 } },
  // What a grant must permit.
  requiredScope: ({ to }) => `greeting:dispatch:${to}`,
  timeoutMs: () => 10_000,
  // One attempt. The idempotency key is the same on every attempt of a run, so that the called side can tell a repetition.
  dispatch: async ({ spec: { to }, idempotencyKey }) => ({
    kind: 'succeeded',
    result: { said: `hello ${to}`, key: idempotencyKey },
  }),
}

/** What Carillon knows of the module before it calls `load`. */
export const module: ModuleManifest = {
  port: MODULE_PORT,
  name: 'greeting',
  version: '0.1.0',
  kinds: ['greeting'],
  load: async () => ({ create: () => ({ targets: [target] }) }),
}
