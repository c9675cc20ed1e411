import { parse } from '../src/index.ts'

type Parsed = ReturnType<typeof parse>
export type Cadence = Extract<Parsed, { ok: true }>['cadence']
export type Problem = Extract<Parsed, { ok: false }>['problems'][number]
type Options = NonNullable<Parameters<typeof parse>[1]>

/** Parses an input that must be accepted. */
export function cadenceOf(input: unknown, options: Options = {}): Cadence {
  const parsed = parse(input, options)
  if (parsed.ok) return parsed.cadence
  throw new Error(`${JSON.stringify(input)} was rejected: ${parsed.problems.map(({ message }) => message).join('; ')}`)
}

/** Parses an input that must be rejected. */
export function problemsOf(input: unknown, options: Options = {}): readonly Problem[] {
  const parsed = parse(input, options)
  if (!parsed.ok) return parsed.problems
  throw new Error(`${JSON.stringify(input)} was accepted`)
}

/** Like `cadenceOf`, but null for a rule that is rejected because it has no slot. The caller checks that this is right. */
export function cadenceUnlessNever(input: unknown, options: Options = {}): Cadence | null {
  const parsed = parse(input, options)
  if (!parsed.ok && parsed.problems.every(({ code }) => code === 'never_fires')) return null
  return cadenceOf(input, options)
}

export function utc(instant: string): number {
  return Date.parse(`${instant}Z`)
}

/** Instants as ISO text, so that a failed assertion is readable. */
export function printAll(instants: Iterable<number | null>): string[] {
  return [...instants].map((instant) => (instant === null ? 'none' : new Date(instant).toISOString()))
}
