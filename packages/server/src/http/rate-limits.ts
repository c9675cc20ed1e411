import rateLimit, { normalizeIP } from '@fastify/rate-limit'
import type { FastifyInstance, FastifyRequest } from 'fastify'

import type { Identity } from './identity.ts'
import { ProblemError } from './problems/problem-error.ts'
import type { TenantRates } from './tenant-rates.ts'

const WINDOW_MS = 60_000
/** Of one address that shows no valid key: enough to read the reference, too little to guess. */
const ANONYMOUS_PER_MINUTE = 600

/** For routes that are asked by machines all day, and cost nothing. */
export const UNLIMITED = { config: { rateLimit: false as const } }

/**
 * Counts requests per key, or per address where there is none, in this process. Asked after whoever calls is known, and
 * before anything else is done for them.
 */
export async function limitRates(
  app: FastifyInstance,
  { requestsPerMinute, tenantRates }: { readonly requestsPerMinute: number; readonly tenantRates: TenantRates },
): Promise<void> {
  const most = async ({ isInstallation, caller }: Identity): Promise<number> => {
    // Whoever set a tenant's limit too low has to be able to raise it.
    const own = isInstallation ? null : await tenantRates.find(caller.tenantId)
    return own ?? requestsPerMinute
  }
  await app.register(rateLimit, {
    timeWindow: WINDOW_MS,
    max: async ({ identity }: FastifyRequest) => (identity === undefined ? ANONYMOUS_PER_MINUTE : most(identity)),
    keyGenerator: ({ identity, ip }: FastifyRequest) =>
      identity === undefined ? `ip ${normalizeIP(ip)}` : `key ${identity.keyId}`,
    enableDraftSpec: true,
    errorResponseBuilder: (_request, { max, ttl }) => {
      const seconds = Math.ceil(ttl / 1000)
      return new ProblemError(
        'rate_limited',
        `expected at most ${max} requests a minute, got more: wait ${seconds} s`,
        {
          headers: { 'retry-after': String(seconds) },
        },
      )
    },
  })
}
