/** Nobody can tell whether a token is genuine: its issuer's keys were never had, or are too old, and cannot be fetched. */
export class JwtKeysUnavailableError extends Error {
  override readonly name = 'JwtKeysUnavailableError'

  constructor(url: string, options: ErrorOptions) {
    super(`expected the keys of the issuer of tokens at ${url}, got none: see the cause`, options)
  }
}
