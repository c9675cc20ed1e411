import { foundText } from '@carillon/api'
import type { FastifyInstance, FastifyRequest } from 'fastify'

import { jsonFault } from './json-faults.ts'
import { invalidInput, ProblemError } from './problems/problem-error.ts'

/** Reads bodies as JSON, and refuses every other kind. */
export function readJsonBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser<Buffer>(
    'application/json',
    { parseAs: 'buffer' },
    async ({ headers }: FastifyRequest, body: Buffer) => {
      requireUncoded(headers['content-encoding'])
      return readJson(body)
    },
  )
}

/** For routes that take none: a body is left unread, whatever it is. Node throws it away. */
export function ignoreBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', async () => undefined)
}

/** Nothing is unpacked: a small body could become one without end. */
function requireUncoded(encoding = ''): void {
  if (/^(?:identity)?$/i.test(encoding)) return
  const message = `expected identity, or no such header, got ${foundText(encoding)}: send the body as it is`
  throw new ProblemError('unsupported_media_type', `Content-Encoding: ${message}`, {
    errors: [{ field: 'Content-Encoding', message }],
    headers: { 'accept-encoding': 'identity' },
  })
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
