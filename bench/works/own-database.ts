import type { Bench, Part, Reading } from '../work.ts'

/**
 * A part with Carillon's schema beside peers that need an empty database. All parts of a work must be in one `interleave`, so that a slow
 * minute of the machine affects all of them.
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
