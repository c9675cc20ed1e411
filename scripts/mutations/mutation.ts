/** A guard, and what its file looks like without it. */
export interface Mutation {
  readonly guard: string
  /** Under the package's `src`. */
  readonly file: string
  readonly from: string
  readonly to: string
  /** Where it must be noticed, under the package; all its tests if not said. */
  readonly tests?: readonly string[]
}
