import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

import { z } from 'zod'

/*
 * Stands in for an OpenFGA server: it answers the Check call as the API defines it (openfga.v1, CheckRequest). It is stricter in one way:
 * it refuses a field that it does not know. It evaluates the model that the guide shows.
 */

export const STORE_ID = '01YCP46JKYM8FJCQ37NMBYHE5X'
export const MODEL_ID = '01G5JAVJ41T49E9TT3SKVS7X1J'
/** The greatest age of a cached answer. */
const STALE_MS = 20_000

interface Tuple {
  readonly user: string
  readonly relation: 'member' | 'admin'
  readonly object: string
}

const USER_TYPES = ['user', 'service']
/** The relations of `project`, each with the written relations that imply it. */
const RELATIONS: Readonly<Record<string, readonly string[]>> = {
  member: ['member'],
  admin: ['admin'],
  can_read: ['member', 'admin'],
  can_write: ['admin'],
}

const id = z.string().regex(/^[ABCDEFGHJKMNPQRSTVWXYZ0-9]{26}$/)
const tupleKey = z.strictObject({
  user: z.string().regex(/^[^\s]{2,512}$/),
  relation: z.string().regex(/^[^:#@\s]{1,50}$/),
  object: z.string().regex(/^[^\s]{2,256}$/),
})
const checkRequest = z.strictObject({
  tuple_key: tupleKey,
  contextual_tuples: z.strictObject({ tuple_keys: z.array(tupleKey) }).optional(),
  authorization_model_id: id.optional(),
  trace: z.boolean().optional(),
  context: z.record(z.string(), z.unknown()).optional(),
  consistency: z.enum(['UNSPECIFIED', 'MINIMIZE_LATENCY', 'HIGHER_CONSISTENCY']).optional(),
})
type CheckRequest = z.infer<typeof checkRequest>

interface Answer {
  readonly status: number
  readonly body: unknown
}

export class OpenFgaStandIn implements AsyncDisposable {
  readonly #server = createServer((request, response) => void this.#serve(request, response))
  readonly #token: string | null
  readonly #tuples = new Map<string, { isThere: boolean; changedAt: number }>()
  #nowMs = 0
  /** The requests so far. */
  readonly received: { readonly headers: IncomingHttpHeaders; readonly body: unknown }[] = []
  /** If set, answers every request. Null: the stand-in answers as OpenFGA does. */
  misbehave: ((response: ServerResponse) => void) | null = null
  /** How many connections it has accepted. */
  connections = 0

  private constructor(token: string | null) {
    this.#token = token
    this.#server.on('connection', () => (this.connections += 1))
  }

  static async start(token: string | null = null): Promise<OpenFgaStandIn> {
    const standIn = new OpenFgaStandIn(token)
    standIn.#server.listen(0, '127.0.0.1')
    await once(standIn.#server, 'listening')
    return standIn
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** Resolves when the next request arrives. */
  nextAsked(): Promise<unknown> {
    return once(this.#server, 'request')
  }

  write(tuple: Tuple): void {
    this.#tuples.set(keyOf(tuple), { isThere: true, changedAt: Number.NEGATIVE_INFINITY })
  }

  delete(tuple: Tuple): void {
    this.#tuples.set(keyOf(tuple), { isThere: false, changedAt: this.#nowMs })
  }

  advance(ms: number): void {
    this.#nowMs += ms
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = parsed(Buffer.concat(chunks).toString('utf8'))
    this.received.push({ headers: request.headers, body })
    if (this.misbehave !== null) return this.misbehave(response)
    const answer = this.#answer(request, body)
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(JSON.stringify(answer.body))
  }

  #answer({ method, url, headers }: IncomingMessage, body: unknown): Answer {
    const store = /^\/stores\/([^/?]+)\/check$/.exec(url ?? '')?.[1]
    if (method !== 'POST' || store === undefined) return refused(404, 'undefined_endpoint', 'Not Found')
    if (this.#token !== null && headers.authorization !== `Bearer ${this.#token}`) {
      return refused(401, 'unauthenticated', 'unauthenticated')
    }
    if (!id.safeParse(store).success) return refused(400, 'store_id_invalid_length', 'invalid store id')
    if (store !== STORE_ID) return refused(404, 'store_id_not_found', 'Store ID not found')
    const { data, error } = checkRequest.safeParse(body)
    if (data === undefined) return refused(400, 'validation_error', error?.message ?? '')
    return this.#check(data)
  }

  #check({ tuple_key: { user, relation, object }, authorization_model_id: model, consistency }: CheckRequest): Answer {
    if (model !== undefined && model !== MODEL_ID) return refused(400, 'authorization_model_not_found', 'no such model')
    // A user is one subject (`user:a`), all subjects of a type (`user:*`), or a set of them (`user:a#member`).
    const type = /^([^:#\s]+):(?:[^:#\s]+|\*)(?:#[^:#\s]+)?$/.exec(user)?.[1] ?? ''
    if (!USER_TYPES.includes(type)) return refused(400, 'validation_error', `type '${type}' not found`)
    if (!/^project:[^:#\s]+$/.test(object)) return refused(400, 'validation_error', `invalid object '${object}'`)
    const from = Object.hasOwn(RELATIONS, relation) ? RELATIONS[relation] : undefined
    if (from === undefined) return refused(400, 'validation_error', `relation 'project#${relation}' not found`)
    const isFresh = consistency === 'HIGHER_CONSISTENCY'
    const allowed = from.some((direct) => this.#holds(keyOf({ user, relation: direct, object }), isFresh))
    return { status: 200, body: { allowed, resolution: '' } }
  }

  /** A cached answer is the one from before the last change. */
  #holds(key: string, isFresh: boolean): boolean {
    const found = this.#tuples.get(key)
    if (found === undefined) return false
    const isCached = !isFresh && this.#nowMs - found.changedAt < STALE_MS
    return isCached ? !found.isThere : found.isThere
  }
}

function keyOf({ user, relation, object }: { user: string; relation: string; object: string }): string {
  return `${object}#${relation}@${user}`
}

function refused(status: number, code: string, message: string): Answer {
  return { status, body: { code, message } }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}
