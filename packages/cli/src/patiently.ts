import { ApiError, RETRY_AFTER_PROBLEMS } from '@carillon/api'

import type { Cli } from './cli.ts'

const TRIES_MAX = 30
const WAIT_DEFAULT_S = 1

/** Asks again where the service said "later", as late as it said. */
export async function patiently<Result>(
  { clock, signal }: Pick<Cli, 'clock' | 'signal'>,
  ask: () => Promise<Result>,
): Promise<Result> {
  for (let tries = 1; ; tries++) {
    try {
      return await ask()
    } catch (error) {
      const mayAskAgain = error instanceof ApiError && RETRY_AFTER_PROBLEMS.includes(error.code) && tries < TRIES_MAX
      if (!mayAskAgain || signal.aborted) throw error
      await clock.sleep((error.retryAfterSeconds ?? WAIT_DEFAULT_S) * 1000, signal)
    }
  }
}
