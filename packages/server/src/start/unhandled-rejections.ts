import type { Meter } from '@opentelemetry/api'
import type { Logger } from 'pino'

type OnRejection = (reason: unknown) => void
type OnException = (error: unknown, origin: NodeJS.UncaughtExceptionOrigin) => void

/** The part of Node's `process` that `surviveRejections` uses. */
export interface HostProcess {
  on(event: 'unhandledRejection', listener: OnRejection): unknown
  on(event: 'uncaughtException', listener: OnException): unknown
  exit(code: number): unknown
}

interface RejectionReport {
  readonly logger: Pick<Logger, 'error'>
  readonly meter: Meter
}

/** The exit code of Node itself after an uncaught exception. */
const EXIT_CODE = 1

/**
 * Logs and counts unhandled rejections instead of ending the process (I13). Carillon's own promises all have a handler; this is for
 * those of libraries, and for mistakes. The listeners are never removed: a connection that is cut at the end of a stop may
 * still reject a promise afterwards.
 */
export function surviveRejections(process: HostProcess, { logger, meter }: RejectionReport): void {
  const rejections = meter.createCounter('process.unhandled_rejections', {
    description: 'rejected promises without a handler; expected: 0',
  })
  // The metric shows 0 from the start: an alert on an increase would miss a counter whose first value is 1.
  rejections.add(0)
  const onRejection: OnRejection = (error) => {
    rejections.add(1)
    logger.error({ event: 'process.unhandled_rejection', error }, 'a promise was rejected without a handler')
  }
  const onException: OnException = (error, origin) => {
    // Under --unhandled-rejections=strict Node emits this event first, then calls `onRejection` as well.
    if (origin === 'unhandledRejection') return
    // A rejection ends one chain of promises. An uncaught exception has left a callback half way, so the state of this
    // process is unknown, and only a new process is safe.
    logger.error({ event: 'process.uncaught_exception', error }, 'an exception was not caught; the process ends')
    process.exit(EXIT_CODE)
  }
  process.on('unhandledRejection', onRejection)
  process.on('uncaughtException', onException)
}
