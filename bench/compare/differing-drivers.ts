import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** What loads and drives the works, besides the files in `works`. */
const SHARED = ['bench-run.ts', 'clock.ts', 'lead-time.ts', 'load-schedules.ts', 'policy.ts']

/** The files of two benches that are in both and differ, by their path within the bench. */
export function differingDrivers(base: string, current: string): readonly string[] {
  const works = readdirSync(join(current, 'works')).map((file) => join('works', file))
  return [...SHARED, ...works].filter((path) => {
    const [one, other] = [join(base, path), join(current, path)]
    return existsSync(one) && existsSync(other) && !readFileSync(one).equals(readFileSync(other))
  })
}
