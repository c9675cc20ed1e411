import { delay, monotonicMs } from './clock.ts'
import type { ServerProcess } from './server-process.ts'

/** Hears of a server that ends without being asked to, and of its restarts. */
export interface RestartListener {
  /** It ended, and is about to be started again. `log` are its last lines, without those of statements. */
  ended(log: readonly string[]): void
  /** It did not start, and is tried again after `retryInMs`. A `PostgresError` quotes what Postgres said. */
  failed(error: unknown, retryInMs: number): void
  /** It accepts connections again, where it did before. */
  restarted(): void
}

interface SupervisorOptions {
  readonly server: ServerProcess
  /** Stops it for good when it fires. */
  readonly signal: AbortSignal
  /** Starts it again; throws if it does not start. */
  readonly restart: () => Promise<ServerProcess>
  readonly listener: RestartListener
}

const PAUSE_MIN_MS = 200
const PAUSE_MAX_MS = 5000
/** A server that ended sooner after its start is started again as after a failed try, so that no crash loop is a fast one. */
const STEADY_MS = 10_000

/** Keeps a server running until the signal fires, for as long as that takes. Resolves once it has ended for good. */
export async function supervise({ server, signal, restart, listener }: SupervisorOptions): Promise<void> {
  let [running, pauseMs, startedAt] = [server, PAUSE_MIN_MS, monotonicMs()]
  for (;;) {
    await running.ended
    if (signal.aborted) return
    tell(() => listener.ended(running.logOfServer))
    if (monotonicMs() - startedAt >= STEADY_MS) pauseMs = PAUSE_MIN_MS
    for (;;) {
      await delay(pauseMs, signal)
      if (signal.aborted) return
      pauseMs = Math.min(2 * pauseMs, PAUSE_MAX_MS)
      try {
        running = await restart()
        break
      } catch (error) {
        if (signal.aborted) return
        tell(() => listener.failed(error, pauseMs))
      }
    }
    startedAt = monotonicMs()
    if (!signal.aborted) tell(() => listener.restarted())
  }
}

/** A listener that throws must not keep the server from being started again. */
function tell(report: () => void): void {
  try {
    report()
  } catch {
    // The listener knows; there is nobody else to tell.
  }
}
