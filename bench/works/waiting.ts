import type { Reading, Sizes, Work } from '../work.ts'
import { latenessOfRetries } from './lateness-of-retries.ts'
import { latenessOfRunNow } from './lateness-of-run-now.ts'
import { percentile, quantiles, WARM_UP, warmLateness } from './quantiles.ts'

const RETRIES_NOTE = `of a backoff of one second, less its jitter; the ${WARM_UP} runs before them are not counted`
const RUN_NOW_NOTE =
  `each asked for through the library in the worker's process, after the one before has ended; ` +
  `the ${WARM_UP} runs before them are not counted`

export const waitingWork: Work<'waiting'> = {
  name: 'waiting',
  title: 'Lateness of waiting runs',
  async measure(bench, sizes) {
    const size = sizes.runs
    const retries = {
      subject: 'Carillon, retries',
      size,
      measure: ({ postgresUrl }: { postgresUrl: string }) => measureRetries(postgresUrl, sizes),
    }
    const runNow = {
      subject: 'Carillon, run-now',
      size,
      measure: ({ postgresUrl }: { postgresUrl: string }) => measureRunNow(postgresUrl, sizes),
    }
    await bench.interleave([retries, runNow], { isMigrated: true })
  },
}

async function measureRetries(url: string, { runs, retrySpacingMs }: Sizes['waiting']): Promise<Reading[]> {
  const sparse = { slots: runs, spacingMs: retrySpacingMs }
  return quantiles(await warmLateness(sparse, (work) => latenessOfRetries(url, work)), RETRIES_NOTE)
}

async function measureRunNow(url: string, { runs, askSpacingMs }: Sizes['waiting']): Promise<Reading[]> {
  const late = await latenessOfRunNow(url, { runs: runs + WARM_UP, spacingMs: askSpacingMs })
  return [
    ...quantiles(late.fromDue.slice(WARM_UP), RUN_NOW_NOTE),
    p50Of('committedP50', late.fromCommit.slice(WARM_UP)),
    p50Of('askedP50', late.fromAsk.slice(WARM_UP)),
  ]
}

function p50Of(metric: string, values: readonly number[]): Reading {
  return { metric, unit: 'ms', value: percentile(values, 50) }
}
