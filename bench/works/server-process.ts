/** Carillon's API in a process of its own. Tells the bench where it is. */
import { readSettings, startServer } from '@carillon/server'

import { argumentOf, endWithBench, tell } from './channel.ts'

export interface ServerReady {
  readonly url: string
}

const service = await startServer(readSettings(argumentOf() as Record<string, string>))
endWithBench(() => service.stop())
tell({ url: service.url } satisfies ServerReady)
