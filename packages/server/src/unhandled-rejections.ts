import type { Meter } from '@opentelemetry/api'
import type { Logger } from 'pino'

type Rejected = (reason: unknown) => void
type Thrown = (error: unknown, origin: NodeJS.UncaughtExceptionOrigin) => void

/** What is needed of Node's `process`. */
export interface FaultyProcess {
  on(event: 'unhandledRejection', listener: Rejected): unknown
  on(event: 'uncaughtException', listener: Thrown): unknown
  exit(code: number): unknown
}

interface RejectionReport {
  readonly logger: Pick<Logger, 'error'>
  readonly meter: Meter
}

/** As Node does it. */
const EXIT_CODE = 1

/**
 * The last net of a process that must go on (I13): a rejected promise that nobody handles is logged and counted, and does
 * not end the process. Every promise has an owner that handles it; this is for those of libraries, and for our mistakes.
 * For good: a connection that is cut at the end of a stop may reject the last promise after it.
 */
export function surviveRejections(process: FaultyProcess, { logger, meter }: RejectionReport): void {
  const rejections = meter.createCounter('process.unhandled_rejections', {
    description: 'rejected promises that nobody handled; expected: 0',
  })
  // So that it is there from the start, and an alert sees the first one.
  rejections.add(0)
  const onRejection: Rejected = (error) => {
    rejections.add(1)
    logger.error({ event: 'process.unhandled_rejection', error }, 'a promise was rejected and nobody handled it')
  }
  const onException: Thrown = (error, origin) => {
    // Under --unhandled-rejections=strict Node asks here first, and tells `onRejection` if somebody listens.
    if (origin === 'unhandledRejection') return
    // A rejection ends one chain of promises. An exception that was thrown to nobody has left a callback in the middle, of
    // ours or of a library: what it was about to change is half changed. Only a new process is in a known state.
    logger.error({ event: 'process.uncaught_exception', error }, 'an exception was thrown and nobody caught it')
    process.exit(EXIT_CODE)
  }
  process.on('unhandledRejection', onRejection)
  process.on('uncaughtException', onException)
}
