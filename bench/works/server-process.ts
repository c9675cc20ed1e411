/** Carillon's API in its own process. It sends the bench its URL. */
import { readSettings, startServer } from '@carillon/server'

import { argumentOf, endWithBench, tell } from './channel.ts'

export interface ServerReady {
  readonly url: string
}

const service = await startServer(readSettings(argumentOf() as Record<string, string>))
endWithBench(() => service.stop())
tell({ url: service.url } satisfies ServerReady)
