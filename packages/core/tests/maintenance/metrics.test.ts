import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import { expect, test } from 'vitest'

import { Events } from '../../src/kernel/events.ts'
import { GaugeCollector } from '../../src/maintenance/gauge-collector.ts'
import { countEvents, gaugeWorker } from '../../src/maintenance/metrics.ts'
import { HEARTBEAT_MS, MINUTE, Pipeline } from '../pipeline.ts'
import { FAIL, held } from '../scripted-target.ts'

/** A meter whose instruments can be read as by a scrape. */
function createMeter() {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 2 ** 30 })
  const provider = new MeterProvider({ readers: [reader] })
  return {
    meter: provider.getMeter('test'),
    read: async (): Promise<Record<string, unknown>> => {
      await reader.forceFlush()
      const metrics = exporter.getMetrics().at(-1)?.scopeMetrics[0]?.metrics ?? []
      await provider.shutdown()
      return Object.fromEntries(
        metrics.map(({ descriptor, dataPoints }) => [
          descriptor.name,
          dataPoints.map(({ attributes, value }) => [
            attributes,
            typeof value === 'object' && 'count' in value ? value.count : value,
          ]),
        ]),
      )
    },
  }
}

test('the metrics of the pipeline have no label that names a tenant or a schedule', async () => {
  await using pipeline = await Pipeline.at('2026-03-02T09:00:30Z')
  const { clock, workerDb: db, target } = pipeline
  const worker = pipeline.worker()
  const { meter, read } = createMeter()
  countEvents(worker.events, meter)
  await pipeline.create({ policy: { retry: { maxAttempts: 2 } } })
  const collector = new GaugeCollector({ db, clock, events: worker.events }, { periodMs: MINUTE })
  target.script = ({ attempt }) => (attempt === 1 ? FAIL : { kind: 'succeeded', result: null })

  clock.advance(MINUTE / 2)
  await worker.runDue()
  const failing = { loop: { failures: 1, forMs: 0, error: 'no' } }
  const holds = { inFlight: worker.loop.inFlight, connectionsInUse: 1, auditLagSeconds: 7 }
  gaugeWorker({ gauges: await collector.runOnce(), ...holds, failing }, meter)
  clock.advance(MINUTE / 2)
  await worker.runDue()

  expect(await read()).toMatchObject({
    'scheduler.slot.lateness_ms': [[{ target_kind: 'test' }, 1]],
    'scheduler.dispatch.total': [
      [{ target_kind: 'test', result: 'retrying' }, 1],
      [{ target_kind: 'test', result: 'succeeded' }, 1],
    ],
    'scheduler.dispatch.duration_ms': [[{ target_kind: 'test' }, 2]],
    'scheduler.dispatch.retries': [[{ attempt: 2 }, 1]],
    'scheduler.schedules.total': [[{ state: 'active', target_kind: 'test' }, 1]],
    'scheduler.queue.available': [[{}, 0]],
    'scheduler.queue.scheduled': [[{}, 1]],
    'scheduler.worker.in_flight': [[{}, 0]],
    'scheduler.worker.failing_services': [[{}, 1]],
    'scheduler.audit.lag_seconds': [[{}, 7]],
    'pg.connection_pool.in_use': [[{ pool: 'worker' }, 1]],
  })
})

test('a lease that expires is counted, and so is the attempt that a rescuer settles for a dead worker', async () => {
  await using pipeline = await Pipeline.at('2026-03-02T09:00:30Z')
  const { clock, target } = pipeline
  const [dead, other] = [pipeline.worker('dead'), pipeline.worker('other')]
  const { meter, read } = createMeter()
  for (const { events } of [dead, other]) countEvents(events, meter)
  await pipeline.create()
  target.script = held().script
  clock.advance(MINUTE / 2)
  await dead.startDue()

  clock.advance(3 * HEARTBEAT_MS)
  await other.rescuer.runOnce()

  expect(await read()).toMatchObject({
    'scheduler.worker.leases_lost': [[{}, 1]],
    'scheduler.rescues': [[{}, 1]],
    'scheduler.dispatch.total': [[{ target_kind: 'test', result: 'retrying' }, 1]],
  })
})

test('failures are counted by the full name of their service, and those of all event listeners together', async () => {
  const events = new Events()
  const { meter, read } = createMeter()
  countEvents(events, meter)
  events.on('attempt.fenced', failingListener)
  events.on('lease.lost', failingListener)

  for (const service of ['settle queue', 'in-doubt commits', 'in-doubt check', 'listener', 'settle queue']) {
    events.emit('service.failed', { service, error: new Error('no') })
  }
  events.emit('attempt.fenced', { runId: 'run', scheduleId: 'daily', scheduledFor: 0 })
  events.emit('lease.lost', { workerId: 'worker' })

  expect(await read()).toMatchObject({
    'scheduler.service.failures': [
      [{ service: 'settle queue' }, 2],
      [{ service: 'in-doubt commits' }, 1],
      [{ service: 'in-doubt check' }, 1],
      [{ service: 'listener' }, 1],
      [{ service: 'event listener' }, 2],
    ],
  })
})

function failingListener(): never {
  throw new Error('no')
}

test('the lag of the slowest replica is a gauge if there is a replica', async () => {
  const gauges = { schedules: [], due: 0, waiting: 0, detached: 0, running: 0, backlogAgeSeconds: 0 }
  const read = async (replicationLagSeconds: number | null): Promise<unknown> => {
    const { meter, read: scrape } = createMeter()
    const idle = { inFlight: 0, connectionsInUse: 0, auditLagSeconds: null, failing: null }
    gaugeWorker({ gauges: { ...gauges, replicationLagSeconds }, ...idle }, meter)
    return (await scrape())['pg.replication.lag_seconds']
  }

  expect(await read(0.25)).toEqual([[{}, 0.25]])
  expect(await read(null)).toBeUndefined()
})
