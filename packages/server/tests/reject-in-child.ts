import { setImmediate } from 'node:timers/promises'

import { createLogger } from '../src/logger.ts'
import { createMetrics } from '../src/metrics.ts'
import { surviveRejections } from '../src/unhandled-rejections.ts'

/** Rejects a promise that nobody handles, and says so if it lives on. Its argument is what it does then. */
const metrics = createMetrics()
surviveRejections(process, { logger: createLogger({ logLevel: 'info' }), meter: metrics.meter })

void Promise.reject(new Error('nobody’s'))
await setImmediate()
const [, counted] = /^process_unhandled_rejections_total (\d+)$/m.exec(await metrics.renderMetrics()) ?? []
process.stdout.write(`still here, ${counted} counted\n`)

if (process.argv[2] === 'throw') {
  process.nextTick(() => {
    throw new Error('half done')
  })
}
