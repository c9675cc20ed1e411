import type { FastifyInstance } from 'fastify'

import { jsonFault } from './json-faults.ts'
import { invalidInput, ProblemError } from './problems/problem-error.ts'

/** Reads bodies as JSON, and refuses every other kind. */
export function readJsonBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser<Buffer>('application/json', { parseAs: 'buffer' }, async (_request: unknown, body: Buffer) =>
    readJson(body),
  )
}

/** For routes that take none: a body is left unread, whatever it is. Node throws it away. */
export function ignoreBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', async () => undefined)
}

function readJson(bytes: Buffer): unknown {
  if (bytes.length === 0) throw malformed('got nothing')
  const body = parseJson(decodeText(bytes))
  const fault = jsonFault(body)
  if (fault !== undefined) throw invalidInput([fault])
  return body
}

/** Strictly: a body with broken characters would else be stored with other ones. */
function decodeText(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (error) {
    throw malformed('got bytes that are no UTF-8', error)
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw malformed('got something else', error)
  }
}

function malformed(found: string, cause?: unknown): ProblemError {
  return new ProblemError('malformed_json', `expected a body of JSON, ${found}: check it with a JSON parser`, { cause })
}
