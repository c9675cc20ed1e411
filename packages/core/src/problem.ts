/** One thing that is wrong with an input: the field at fault, what was expected and found. */
export interface Problem {
  /** From the input's root: `target.headers.Host`, `policy.retry.maxAttempts`. Empty for the input itself. */
  readonly path: string
  /** One sentence: what was expected, what was found, what to do. */
  readonly message: string
}
