import { ProblemError } from './problems/problem-error.ts'

interface Revised {
  readonly revision: number
}

/** How a revision is written in ETag and If-Match. */
export function etagOf({ revision }: Revised): string {
  return `"${revision}"`
}

/**
 * As options of a change: the one revision that it is meant for, or none if for whichever there is. The schema has checked
 * the text. Of a list it is the one that the schedule has, which the change itself compares again: so nobody comes between.
 *
 * @param read asked only if the text alone does not tell
 * @throws ProblemError if the schedule has none of those that are named
 */
export async function matching(
  ifMatch: string | undefined,
  read: () => Promise<Revised>,
): Promise<{ readonly revision?: number }> {
  if (ifMatch === undefined || ifMatch === '*') return {}
  const named = strongRevisions(ifMatch)
  const [only] = named
  if (only !== undefined && named.length === 1) return { revision: only }
  const { revision } = await read()
  if (named.includes(revision)) return { revision }
  const message =
    named.length === 0
      ? 'expected an ETag such as "3", got only weak ones, which no change can be meant for: send it as it was read'
      : `expected one of the revisions ${named.join(', ')}, found ${revision}: read the schedule again`
  throw new ProblemError('revision_conflict', message, { errors: [{ field: 'If-Match', message }] })
}

/** RFC 9110, 13.1.1: by If-Match a weak tag matches nothing. */
function strongRevisions(ifMatch: string): number[] {
  return ifMatch
    .split(',')
    .map((tag) => tag.trim())
    .filter((tag) => tag.startsWith('"'))
    .map((tag) => Number(tag.slice(1, -1)))
}

/** @throws ProblemError if a change does not say what it is meant for */
export function requireIfMatch(ifMatch: string | undefined): string {
  if (ifMatch !== undefined) return ifMatch
  const message = 'expected the ETag of what was read, got nothing: send it, or * for whatever there is'
  throw new ProblemError('revision_required', `If-Match: ${message}`, { errors: [{ field: 'If-Match', message }] })
}
