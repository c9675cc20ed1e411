import { ProblemError } from './problems/problem-error.ts'

/** How a revision is written in ETag and If-Match. */
export function etagOf({ revision }: { readonly revision: number }): string {
  return `"${revision}"`
}

/** The revision that a change is meant for; undefined if whichever there is. The schema has checked the text. */
export function revisionOf(ifMatch: string | undefined): number | undefined {
  return ifMatch === undefined || ifMatch === '*' ? undefined : Number(/\d+/.exec(ifMatch)?.[0])
}

/** As options of a change. */
export function matching(ifMatch: string | undefined): { readonly revision?: number } {
  const revision = revisionOf(ifMatch)
  return revision === undefined ? {} : { revision }
}

/** @throws ProblemError if a change does not say what it is meant for */
export function requireIfMatch(ifMatch: string | undefined): string {
  if (ifMatch !== undefined) return ifMatch
  const message = 'expected the ETag of what was read, got nothing: send it, or * for whatever there is'
  throw new ProblemError('revision_required', `If-Match: ${message}`, { errors: [{ field: 'If-Match', message }] })
}
