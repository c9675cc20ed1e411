/** Nobody could tell whether somebody may do something. It is then neither allowed nor refused for good: ask again later. */
export class AuthorizationUnavailableError extends Error {
  override readonly name = 'AuthorizationUnavailableError'
}
