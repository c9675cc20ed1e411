import { destination, pino, type DestinationStream, type Logger } from 'pino'

import { codeOf } from './service-error.ts'
import type { Settings } from './settings.ts'

/**
 * One JSON line per event, on stderr: stdout is for what a command has to say. Written at once, so that the last lines
 * before a crash are there.
 */
export function createLogger(
  { logLevel }: Pick<Settings, 'logLevel'>,
  stream: DestinationStream = standardError(),
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

/** So much is kept of what cannot be written. Beyond it lines are dropped. */
const UNWRITTEN_MAX_BYTES = 1_048_576

/** A log that cannot be written, because its disk is full for instance, must not end the process. It goes on when it can. */
export function standardError(fd = 2): DestinationStream {
  const stream = destination({ fd, sync: true, maxLength: UNWRITTEN_MAX_BYTES })
  stream.on('error', () => undefined)
  return stream
}

/**
 * What is told of an error. Not all its fields: Postgres puts whole rows into `detail`, and a row may hold a payload. Nor
 * what it says of data that it cannot read (SQLSTATE 22…), for it quotes them.
 */
function describeError(error: unknown): unknown {
  if (!(error instanceof Error)) return { message: String(error) }
  const code = codeOf(error)
  const message = /^22[0-9A-Z]{3}$/.test(code ?? '') ? 'Postgres cannot read a value' : error.message
  const frames = error.stack?.split('\n').filter((line) => /^ {4}at /.test(line)) ?? []
  const stack = frames.map((line) => line.trim())
  return { name: error.name, message, ...(code === undefined ? {} : { code }), stack, ...causeOf(error) }
}

function causeOf({ cause }: Error): { readonly cause?: unknown } {
  return cause === undefined ? {} : { cause: describeError(cause) }
}
