/** How often each property is tried: `CADENCE_RUNS=100000 npx vitest run packages/cadence` is the long run. */
export const RUNS = Number(process.env['CADENCE_RUNS'] ?? 2_000)

/** For a property, so that a long run is not cut short by the test runner's own clock. */
export const PROPERTY_TIMEOUT = 120_000 * Math.max(1, RUNS / 2_000)
