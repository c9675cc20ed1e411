import type { Part } from '@carillon/core'
import type { Meter } from '@opentelemetry/api'
import { PrometheusExporter, PrometheusSerializer } from '@opentelemetry/exporter-prometheus'
import { MeterProvider } from '@opentelemetry/sdk-metrics'

/** The numbers of one process, for Prometheus to fetch. */
export interface Metrics {
  readonly meter: Meter
  /** In Prometheus' text format, 0.0.4. */
  renderMetrics(): Promise<string>
}

interface CountedPool {
  readonly totalCount: number
  readonly idleCount: number
}

export function createMetrics(): Metrics {
  // Our own server answers for it, so that there is one port, and one place that decides who may ask.
  const reader = new PrometheusExporter({ preventServerStart: true })
  const provider = new MeterProvider({ readers: [reader] })
  // Without what would be the same on every line: the name of the library, and of this process.
  const serializer = new PrometheusSerializer(undefined, false, undefined, true, true)
  return {
    meter: provider.getMeter('carillon'),
    renderMetrics: async () => {
      const { resourceMetrics, errors } = await reader.collect()
      if (errors.length > 0) throw new AggregateError(errors, 'some metrics could not be read')
      return `${serializer.serialize(resourceMetrics)}\n`
    },
  }
}

/** E-63: a worker tells of its own pools; this tells of the one behind the API. */
export function gaugePool(meter: Meter, pool: CountedPool): void {
  meter
    .createObservableGauge('pg.connection_pool.in_use', { description: 'connections to Postgres that are lent' })
    .addCallback((result) => result.observe(pool.totalCount - pool.idleCount, { pool: 'server' }))
}

/** A worker tells of its own services; this tells of what works by itself behind the API. */
export function gaugeFailing(meter: Meter, parts: readonly Part[]): void {
  meter
    .createObservableGauge('server.failing_parts', { description: 'parts of this server that fail at the moment' })
    .addCallback((result) => result.observe(parts.filter(({ failure }) => failure !== undefined).length))
}
