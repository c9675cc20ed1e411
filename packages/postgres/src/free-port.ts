import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'

/** Postgres listens nowhere else: nothing outside of this machine can reach it. */
export const LOOPBACK = '127.0.0.1'

/** A port that was free a moment ago. Somebody may take it first: the caller tries another then. */
export async function findFreePort(): Promise<number> {
  const probe = createServer().listen(0, LOOPBACK)
  await once(probe, 'listening')
  const { port } = probe.address() as AddressInfo
  probe.close()
  await once(probe, 'close')
  return port
}
