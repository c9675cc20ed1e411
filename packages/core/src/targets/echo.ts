import { ECHO_PAYLOAD_MAX_BYTES, strictEchoTargetSchema } from '@carillon/api'
import type { z } from 'zod'

import type { Json } from '../kernel/json.ts'
import type { Target } from '../ports/target.ts'

type EchoSpec = z.infer<typeof strictEchoTargetSchema>

/** The target that calls nothing and answers its payload: for first steps, and for tests without a called side. */
export const echoTarget: Target<EchoSpec> = {
  kind: 'echo',
  title: 'Echo',
  example: { kind: 'echo', payload: { greeting: 'hello' } },
  schema: strictEchoTargetSchema,
  // It cannot fail, so nothing is tried again.
  policy: { retry: { maxAttempts: 1, baseSeconds: 1, capSeconds: 1 } },
  scopePattern: 'echo:dispatch:payload',
  requiredScope: () => 'echo:dispatch:payload',
  timeoutMs: () => 1000,
  check: ({ spec }) => {
    const bytes = Buffer.byteLength(JSON.stringify(payloadOf(spec)))
    if (bytes <= ECHO_PAYLOAD_MAX_BYTES) return []
    const message = `expected at most ${ECHO_PAYLOAD_MAX_BYTES} bytes of JSON, got ${bytes}: the ledger keeps it for every run`
    return [{ path: 'payload', message }]
  },
  dispatch: async ({ spec }) => ({ kind: 'succeeded', result: payloadOf(spec) }),
}

function payloadOf({ payload = null }: EchoSpec): Json {
  return payload as Json
}
