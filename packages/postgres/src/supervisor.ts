import { delay, monotonicMs } from './clock.ts'
import type { ServerProcess } from './server-process.ts'

/** Called when a server ends unexpectedly, and for each restart. */
export interface RestartListener {
  /** The server ended and will be restarted. `log` has its last lines, without lines about statements. */
  ended(log: readonly string[]): void
  /** A restart failed; the next try follows after `retryInMs`. A `PostgresError` quotes the log of Postgres. */
  failed(error: unknown, retryInMs: number): void
  /** The server accepts connections again, on the same port. */
  restarted(): void
}

interface SupervisorOptions {
  readonly server: ServerProcess
  /** Ends the supervision when it aborts. */
  readonly signal: AbortSignal
  /** Starts the server again. Throws if it does not start. */
  readonly restart: () => Promise<ServerProcess>
  readonly listener: RestartListener
}

const PAUSE_MIN_MS = 200
const PAUSE_MAX_MS = 5000
/** A server that runs shorter than this does not reset the pause, so a crash loop slows down. */
const STEADY_MS = 10_000

/** Restarts a server until the signal aborts. Resolves once the signal has aborted and the server has ended. */
export async function supervise({ server, signal, restart, listener }: SupervisorOptions): Promise<void> {
  let [running, pauseMs, startedAt] = [server, PAUSE_MIN_MS, monotonicMs()]
  for (;;) {
    await running.ended
    if (signal.aborted) return
    notify(() => listener.ended(running.logOfServer))
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
        notify(() => listener.failed(error, pauseMs))
      }
    }
    startedAt = monotonicMs()
    if (!signal.aborted) notify(() => listener.restarted())
  }
}

/** Calls the listener. A listener that throws must not prevent the restart. */
function notify(report: () => void): void {
  try {
    report()
  } catch {
    // The error is the listener's own; there is no other place to report it.
  }
}
