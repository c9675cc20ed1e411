/**
 * A list as Postgres reads an array, made in one go. The driver looks at every element for what needs quotes, which costs a
 * batch more than writing it: only for what never does, such as ids, numbers and names of states.
 */
export function plainArray(values: readonly (string | number | null)[]): string {
  return `{${values.map((value) => value ?? 'NULL').join(',')}}`
}
