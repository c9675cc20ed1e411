import { once } from 'node:events'
import { connect, createServer, type AddressInfo } from 'node:net'

import type { FaultPlan } from './fault-plan.ts'
import type { SeededRandom } from './seeded-random.ts'
import { WireSession } from './wire-session.ts'

/** A proxy on loopback between clients and Postgres. It reads their messages, and breaks connections as a plan decides. */
export interface WireProxy extends AsyncDisposable {
  /** The URL of Postgres through the proxy. */
  readonly url: string
}

export async function startWireProxy(
  postgresUrl: string,
  { plan, random }: { readonly plan: FaultPlan; readonly random: SeededRandom },
): Promise<WireProxy> {
  const postgres = new URL(postgresUrl)
  const sessions = new Set<WireSession>()
  const listener = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    const server = connect({ host: postgres.hostname, port: Number(postgres.port), noDelay: true })
    const session = new WireSession({ client, server, plan, random })
    sessions.add(session)
    for (const socket of [client, server]) {
      socket.once('close', () => client.destroyed && server.destroyed && sessions.delete(session))
    }
  })
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const url = new URL(postgresUrl)
  url.port = String((listener.address() as AddressInfo).port)
  return {
    url: url.href,
    async [Symbol.asyncDispose]() {
      listener.close()
      for (const session of sessions) session.destroy()
      await once(listener, 'close')
    },
  }
}
