/** How many cases each property test tries. For a long run: `CADENCE_RUNS=100000 npx vitest run packages/cadence`. */
export const RUNS = Number(process.env['CADENCE_RUNS'] ?? 2_000)

/** The timeout of a property test, scaled so that a long run does not time out. */
export const PROPERTY_TIMEOUT = 120_000 * Math.max(1, RUNS / 2_000)
