/**
 * A list as Postgres reads an array, made in one go. The driver looks at every element for what needs quotes, which costs a
 * batch more than writing it: only for what never does, such as ids, numbers and names of states.
 */
export function plainArray(values: readonly (string | number | null)[]): string {
  return `{${values.map((value) => value ?? 'NULL').join(',')}}`
}

/** The same for texts that may hold anything. Neighbours are mostly alike: what was put in quotes last is not done again. */
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
