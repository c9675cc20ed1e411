import { ProblemError } from './problems.ts'

interface Revised {
  readonly revision: number
}

/**
 * Turns If-Match into the revision that a schedule must have to be changed; none for `*` or without the header. The schema has
 * checked the syntax. A list that names the current revision becomes that revision. The change compares it again, so a
 * concurrent change is not missed.
 *
 * @param read called only for a list of several revisions
 * @throws ProblemError if the schedule has none of the named revisions
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
      ? 'expected a strong ETag such as "3", got only weak ones: send the ETag as it was read'
      : `expected one of the revisions ${named.join(', ')}, got ${revision}: read the schedule again`
  throw new ProblemError('revision_conflict', message, { errors: [{ field: 'If-Match', message }] })
}

/** Returns the revisions in strong ETags. In If-Match a weak ETag matches nothing (RFC 9110, 13.1.1). */
function strongRevisions(ifMatch: string): number[] {
  return ifMatch
    .split(',')
    .map((tag) => tag.trim())
    .filter((tag) => tag.startsWith('"'))
    .map((tag) => Number(tag.slice(1, -1)))
}

/** @throws ProblemError if a change comes without If-Match, and so does not say which revision it is meant for */
export function requireIfMatch(ifMatch: string | undefined): string {
  if (ifMatch !== undefined) return ifMatch
  const message = 'expected the ETag that was read, got nothing: send it, or * for any revision'
  throw new ProblemError('revision_required', `If-Match: ${message}`, { errors: [{ field: 'If-Match', message }] })
}
