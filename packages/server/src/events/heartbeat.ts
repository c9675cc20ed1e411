import type { Clock } from '@carillon/core'

import type { Follower } from './follower.ts'

const HEARTBEAT_MS = 15_000

/**
 * Sends a comment now and then until the stream ends, which keeps proxies from closing an idle connection. Also ends the stream of a
 * client that may no longer follow: on a stream without events nothing else checks.
 */
export function startHeartbeat(clock: Clock, follower: Follower, textNow: () => string): void {
  const cancel = clock.after(HEARTBEAT_MS, () => {
    follower.signal.removeEventListener('abort', cancel)
    follower.sendUnchecked(textNow())
    void follower.endIfRefused()
    startHeartbeat(clock, follower, textNow)
  })
  if (follower.signal.aborted) cancel()
  else follower.signal.addEventListener('abort', cancel, { once: true })
}
