import type { Bench, Part, Reading } from '../work.ts'

/**
 * A part with Carillon's schema beside peers that want a bare database: all of a work have to be in one `interleave`, so that
 * a slow minute of the machine hits all of them.
 */
export function ownPart(
  bench: Bench,
  part: Pick<Part, 'subject' | 'size'>,
  measure: (url: string) => Promise<readonly Reading[]>,
): Part {
  return {
    ...part,
    async measure() {
      await using database = await bench.createDatabase({ isMigrated: true })
      return await measure(database.url)
    },
  }
}
