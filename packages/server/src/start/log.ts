import type { EventMap, EventName, Events } from '@carillon/core'
import { destination, pino, type DestinationStream, type Logger } from 'pino'

import { codeOf } from './operator-error.ts'
import type { Settings } from './settings.ts'

/** The most log text that is buffered while stderr cannot be written to. Further lines are dropped. */
const UNWRITTEN_MAX_BYTES = 1_048_576

/**
 * Writes one JSON line per event to stderr, because stdout is for the output of commands. Lines are written synchronously, so
 * that the last lines before a crash are not lost.
 */
export function createLogger(
  { logLevel }: Pick<Settings, 'logLevel'>,
  stream: DestinationStream = stderrSink(),
): Logger {
  return pino(
    {
      level: logLevel,
      base: null,
      formatters: { level: (label) => ({ level: label }) },
      timestamp: pino.stdTimeFunctions.isoTime,
      serializers: { error: describeError, err: describeError },
    },
    stream,
  )
}

/** The log on stderr. A write that fails, as on a full disk, does not end the process. Logging resumes when writes succeed again. */
export function stderrSink(fd = 2): DestinationStream {
  const stream = destination({ fd, sync: true, maxLength: UNWRITTEN_MAX_BYTES })
  stream.on('error', () => undefined)
  return stream
}

/**
 * Leaves out most fields of an error: Postgres puts whole rows into `detail`, and a row may hold a payload. The message of a
 * data exception (SQLSTATE 22…) is replaced too, because it quotes the data.
 */
function describeError(error: unknown): unknown {
  if (!(error instanceof Error)) return { message: String(error) }
  const code = codeOf(error)
  const message = /^22[0-9A-Z]{3}$/.test(code ?? '') ? 'Postgres cannot read a value' : error.message
  const frames = error.stack?.split('\n').filter((line) => /^ {4}at /.test(line)) ?? []
  const stack = frames.map((line) => line.trim())
  const cause = error.cause === undefined ? {} : { cause: describeError(error.cause) }
  return { name: error.name, message, ...(code === undefined ? {} : { code }), stack, ...cause }
}

type Level = 'debug' | 'info' | 'warn'

/**
 * Changes of schedules are logged at `info`: together they are the audit trail of who changed what. What happens per slot is
 * in the ledger already, so it is logged at `debug` only.
 */
const LEVELS: Readonly<Record<EventName, Level>> = {
  'schedule.created': 'info',
  'schedule.edited': 'info',
  'schedule.paused': 'info',
  'schedule.resumed': 'info',
  'schedule.completed': 'info',
  'schedule.deleted': 'info',
  'grant.expiring': 'warn',
  'run.began': 'debug',
  'slot.skipped': 'debug',
  'attempt.settled': 'debug',
  'run.detached': 'debug',
  'attempt.fenced': 'warn',
  'run.rescued': 'warn',
  'lease.lost': 'warn',
  'audit.found': 'warn',
  // Emitted every few minutes.
  'audit.finished': 'debug',
  'service.failed': 'warn',
}

/** Writes one line per event of this process. Events hold ids, never payloads. */
export function logEvents(events: Events, logger: Logger): void {
  for (const name of Object.keys(LEVELS) as EventName[]) {
    events.on(name, (event) => logger[levelOf(name, event)]({ event: name, ...event }, name.replace('.', ' ')))
  }
}

/** An audit that found something, or could not check every schedule, is logged as a warning. */
function levelOf(name: EventName, event: EventMap[EventName]): Level {
  const needsAttention = 'unaudited' in event && (event.findings > 0 || event.unaudited > 0)
  return needsAttention ? 'warn' : LEVELS[name]
}
