import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import { expect, test } from 'vitest'

import { UNKNOWN_ID } from './example-schedules.ts'
import { createTestApp } from './test-app.ts'

test('requests are measured by method, route and status, and no label names a caller', async () => {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 2 ** 30 })
  const provider = new MeterProvider({ readers: [reader] })
  await using world = await createTestApp({ meter: provider.getMeter('test') })

  await world.request('GET', `/api/v1/schedules/${UNKNOWN_ID}`)
  await world.request('GET', `/api/v1/schedules/other`)
  await world.request('GET', '/nothing/of/the/kind')

  await reader.forceFlush()
  const [metric] = exporter.getMetrics().at(-1)?.scopeMetrics[0]?.metrics ?? []
  await provider.shutdown()
  expect(metric?.descriptor).toMatchObject({ name: 'http.server.request.duration_seconds', unit: 's' })
  expect(metric?.dataPoints.map(({ attributes, value }) => [attributes, (value as { count: number }).count])).toEqual([
    [{ method: 'GET', route: '/api/v1/schedules/:id', status: 404 }, 2],
    [{ method: 'GET', route: 'none', status: 404 }, 1],
  ])
})
