/* Values as the text of a statement's parameters. */

/**
 * A list as the text of a Postgres array. Only for values that need no quotes, such as ids, numbers and names of states. The
 * driver's own conversion checks every element for characters to escape, which is slow for large batches.
 */
export function plainArray(values: readonly (string | number | null)[]): string {
  return `{${values.map((value) => value ?? 'NULL').join(',')}}`
}

/** Like `plainArray`, for any text. Adjacent values are often equal, so a repeated value is quoted only once. */
export function quotedArray(values: readonly string[]): string {
  let last: string | undefined
  let quoted = ''
  const quote = (value: string): string => {
    if (value !== last) quoted = `"${value.replaceAll(/["\\]/g, '\\$&')}"`
    last = value
    return quoted
  }
  return `{${values.map(quote).join(',')}}`
}

export function instantText(instant: number): string
export function instantText(instant: number | null): string | null
export function instantText(instant: number | null): string | null {
  return instant === null ? null : new Date(instant).toISOString()
}

/** A list of instants that is one element of an array of lists; an empty text for no instants, because Postgres has no ragged arrays. */
export function instantsText(instants: readonly number[]): string {
  return instants.length === 0 ? '' : plainArray(instants.map((instant) => instantText(instant)))
}
