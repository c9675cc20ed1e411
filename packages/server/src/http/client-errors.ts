import { randomUUID } from 'node:crypto'
import type { Socket } from 'node:net'

import type { Logger } from 'pino'

import { problemAnswer } from './problems/problem-answer.ts'
import { ProblemError } from './problems/problem-error.ts'

const REASONS: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  408: 'Request Timeout',
  431: 'Request Header Fields Too Large',
}

/** Answers what Node cannot even read as a request. Written by hand: there is neither a request nor a reply. */
export function createClientErrorHandler(logger: Logger): (error: Error, socket: Socket) => void {
  return (error, socket) => {
    if (!socket.writable) {
      socket.destroy()
      return
    }
    const requestId = randomUUID()
    const problem = problemOfParser('code' in error ? error.code : undefined)
    const { status, headers, body } = problemAnswer(problem, requestId)
    const text = JSON.stringify(body)
    const lines = Object.entries({
      ...headers,
      'content-length': String(Buffer.byteLength(text)),
      'x-request-id': requestId,
      'x-content-type-options': 'nosniff',
      connection: 'close',
    }).map(([name, value]) => `${name}: ${value}`)
    socket.end([`HTTP/1.1 ${status} ${REASONS[status] ?? ''}`, ...lines, '', text].join('\r\n'))
    logger.info({ requestId, method: null, route: null, status, problem: problem.code }, 'request')
  }
}

function problemOfParser(code: unknown): ProblemError {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new ProblemError('headers_too_large', 'expected at most 16 KiB of path, query and headers, got more')
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new ProblemError(
        'request_timeout',
        'expected a whole request within 30 s, got a part of it: send it again',
      )
    default:
      return new ProblemError('invalid_input', 'expected a request of HTTP/1.1, got what cannot be read as one')
  }
}
