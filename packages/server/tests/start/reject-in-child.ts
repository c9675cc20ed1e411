import { setImmediate } from 'node:timers/promises'

import { createLogger } from '../../src/start/log.ts'
import { createMetrics } from '../../src/start/metrics.ts'
import { surviveRejections } from '../../src/start/unhandled-rejections.ts'

/** Leaves a rejection unhandled, and prints a line if the process survives. With the argument `throw`, throws afterwards. */
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
