interface Metric {
  readonly label: string
  readonly isLessBetter: boolean
}

/** The labels of metrics on the page. A metric that is not listed is shown by its own name. */
export const METRICS: Readonly<Record<string, Metric>> = {
  slotsPerSecond: { label: 'slots', isLessBetter: false },
  perSecond: { label: 'rate', isLessBetter: false },
  firstMs: { label: 'first call after', isLessBetter: true },
  bystanderMs: { label: 'the bystander starts after', isLessBetter: true },
  p50: { label: 'p50', isLessBetter: true },
  p99: { label: 'p99', isLessBetter: true },
  committedP50: { label: 'p50 from the commit', isLessBetter: true },
  askedP50: { label: 'p50 from the ask', isLessBetter: true },
  max: { label: 'max', isLessBetter: true },
  cpuPercent: { label: 'CPU of the worker', isLessBetter: true },
  postgresCpuPercent: { label: 'CPU of Postgres', isLessBetter: true },
  auditSeconds: { label: 'the audit took', isLessBetter: true },
  workerMegabytes: { label: 'memory of the worker', isLessBetter: true },
}
