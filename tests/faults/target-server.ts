import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** One call, as the target received it. Instants are in epoch milliseconds. */
export interface Call {
  /** The Idempotency-Key: the same for every attempt of one slot. */
  readonly key: string
  readonly scheduleId: string
  readonly scheduledFor: number
  readonly runId: string
  readonly attempt: number
  readonly arrivedAt: number
  /** Null until the call is answered. It stays null if the caller disconnected. */
  answeredAt: number | null
  status: number | null
  /** When the caller disconnected without an answer. */
  brokenAt: number | null
}

/** The behaviours of a target. A schedule chooses one in its URL. */
export const BEHAVIOURS = ['quick', 'slow', 'flaky'] as const
export type Behaviour = (typeof BEHAVIOURS)[number]

/** An HTTP server that every schedule calls. It records each call, and answers some slowly and some with an error. */
export class TargetServer implements AsyncDisposable {
  readonly calls: Call[] = []
  readonly #server = createServer((request, response) => this.#arrive(request, response))

  static async start(): Promise<TargetServer> {
    const target = new TargetServer()
    target.#server.listen(0, '127.0.0.1')
    await once(target.#server, 'listening')
    return target
  }

  url(behaviour: Behaviour): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/${behaviour}`
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
  }

  #arrive(request: IncomingMessage, response: ServerResponse): void {
    const call = readCall(request)
    this.calls.push(call)
    const { status, afterMs } = answerTo(call, request.url)
    const timer = setTimeout(() => response.writeHead(status).end(), afterMs)
    request.resume()
    response.once('finish', () => {
      call.answeredAt = Date.now()
      call.status = status
    })
    response.once('close', () => {
      clearTimeout(timer)
      if (call.answeredAt === null) call.brokenAt = Date.now()
    })
  }
}

function readCall({ headers }: IncomingMessage): Call {
  const headerOf = (name: string): string => String(headers[name])
  return {
    key: headerOf('idempotency-key'),
    scheduleId: headerOf('carillon-schedule-id'),
    scheduledFor: Date.parse(headerOf('carillon-scheduled-for')),
    runId: headerOf('carillon-run-id'),
    attempt: Number(headerOf('carillon-attempt')),
    arrivedAt: Date.now(),
    answeredAt: null,
    status: null,
    brokenAt: null,
  }
}

/** The answer depends only on the slot, so that it is the same for every worker. */
function answerTo({ key, attempt }: Call, path = ''): { status: number; afterMs: number } {
  const chance = (createHash('sha256').update(key).digest()[0] ?? 0) / 256
  if (path === '/slow') return { status: 200, afterMs: 800 + 2200 * chance }
  const isRefused = path === '/flaky' && attempt <= (chance < 0.2 ? 2 : chance < 0.6 ? 1 : 0)
  return { status: isRefused ? 503 : 200, afterMs: 5 + 60 * chance }
}

/** The times from a lost attempt to the next attempt of the same run, in milliseconds. */
export interface RecoveryTimes {
  readonly count: number
  readonly p50: number
  readonly p99: number
  readonly longest: number
}

/**
 * A call whose caller broke the connection is a lost attempt; the next call of the same slot is the recovery. A run that was lost several
 * times counts each time, from its last loss. A cancelled run has no next call and does not count.
 */
export function recoveryTimes(calls: readonly Call[]): RecoveryTimes {
  const waits = [...Map.groupBy(calls, ({ key }) => key).values()]
    .flatMap((attempts) => {
      const inOrder = attempts.toSorted((a, b) => a.arrivedAt - b.arrivedAt)
      return inOrder.map(({ brokenAt }, index) => (inOrder[index + 1]?.arrivedAt ?? NaN) - (brokenAt ?? NaN))
    })
    .filter((wait) => wait >= 0)
    .toSorted((a, b) => a - b)
  const at = (share: number): number => waits[Math.min(waits.length - 1, Math.floor(waits.length * share))] ?? 0
  return { count: waits.length, p50: at(0.5), p99: at(0.99), longest: waits.at(-1) ?? 0 }
}
