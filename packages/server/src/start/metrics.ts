import type { MonitoredPart } from '@carillon/core'
import type { Meter } from '@opentelemetry/api'
import { PrometheusExporter, PrometheusSerializer } from '@opentelemetry/exporter-prometheus'
import { MeterProvider } from '@opentelemetry/sdk-metrics'

/** The metrics of one process, scraped by Prometheus. */
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
  // The exporter's own HTTP server stays off: the API serves /metrics, so there is one port.
  const reader = new PrometheusExporter({ preventServerStart: true })
  const provider = new MeterProvider({ readers: [reader] })
  // Leaves out the labels for the library and the resource, which would be the same on every line.
  const serializer = new PrometheusSerializer(undefined, false, undefined, true, true)
  return {
    meter: provider.getMeter('carillon'),
    renderMetrics: async () => {
      const { resourceMetrics, errors } = await reader.collect()
      if (errors.length > 0) throw new AggregateError(errors, 'some metrics could not be collected')
      return `${serializer.serialize(resourceMetrics)}\n`
    },
  }
}

/** Registers a gauge of the API's connection pool. A worker registers gauges of its own pools. */
export function gaugePool(meter: Meter, pool: CountedPool): void {
  meter
    .createObservableGauge('pg.connection_pool.in_use', { description: 'connections to Postgres that are in use' })
    .addCallback((result) => result.observe(pool.totalCount - pool.idleCount, { pool: 'server' }))
}

/** Registers a gauge of the failing background parts of the API. A worker registers one of its own services. */
export function gaugeFailing(meter: Meter, parts: readonly MonitoredPart[]): void {
  meter
    .createObservableGauge('server.failing_parts', { description: 'background parts of this server that are failing' })
    .addCallback((result) => result.observe(parts.filter(({ failure }) => failure !== undefined).length))
}
