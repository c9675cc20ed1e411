/** One broken rule at one place. */
export interface Violation {
  readonly rule: string
  /** Path from the repository's root, with forward slashes. */
  readonly file: string
  readonly line: number
  readonly message: string
}
