import type { Mutation } from './mutation.ts'

/** Each of these must turn a test red: `npm run test:mutations -- server`. */
export const SERVER_MUTATIONS: readonly Mutation[] = [
  {
    guard: 'a member may not change anything',
    file: 'http/operation-routes.ts',
    from: "if (role === 'admin' && identity.role !== 'admin') {",
    to: "if (role === 'admin' && identity.role === undefined) {",
    tests: ['tests/http/authentication.test.ts'],
  },
  {
    guard: 'I9: only the installation makes keys for other projects',
    file: 'http/routes/keys.ts',
    from: 'if (isInstallation || (tenant === caller.tenantId && project === caller.projectId)) {',
    to: 'if (isInstallation || project !== undefined) {',
    tests: ['tests/http/authentication.test.ts'],
  },
  {
    guard: 'a page of somebody else cannot change anything with the cookie of a signed-in browser',
    file: 'http/operation-routes.ts',
    from: "if (isBySession && method !== 'get' && !isSameOrigin(request.headers)) {",
    to: "if (isBySession && method === 'post' && request.headers === undefined) {",
    tests: ['tests/http/authentication.test.ts'],
  },
  {
    guard: 'an edit names the revision it is meant for',
    file: 'http/revision.ts',
    from: 'if (ifMatch !== undefined) return ifMatch',
    to: "if (ifMatch !== '') return ifMatch ?? '*'",
    tests: ['tests/http/schedule-changes.test.ts'],
  },
  {
    guard: 'a cursor is good for no other list',
    file: 'http/cursor.ts',
    from: 'z.literal(kind.list)',
    to: 'z.string()',
    tests: ['tests/http/paging.test.ts'],
  },
  {
    guard: 'basic authentication is for calendars alone',
    file: 'http/credentials.ts',
    from: "return isBasicAllowed ? { kind: 'key', secret: passwordOf(value) } : undefined",
    to: "return { kind: 'key', secret: passwordOf(value) }",
    tests: ['tests/http/authentication.test.ts'],
  },
  {
    guard: 'a stream ends once its key is revoked',
    file: 'http/events/feed-hub.ts',
    from: 'if (!(await isStillAllowed())) follower.end()',
    to: 'await isStillAllowed()',
    tests: ['tests/http/event-streams.test.ts'],
  },
  {
    guard: 'a client that does not read is cut',
    file: 'http/events/follower.ts',
    from: 'if (this.stream.readableLength > BUFFERED_MAX_BYTES) this.stream.destroy()',
    to: '',
    tests: ['tests/http/event-streams.test.ts'],
  },
  {
    guard: 'what was read while catching up is not sent twice',
    file: 'http/events/follower.ts',
    from: 'else if (!this.#seen.delete(change.cursor)) this.send(change.text)',
    to: 'else this.send(change.text)',
    tests: ['tests/http/catch-up.test.ts'],
  },
  {
    guard: 'a sign-in link works once',
    file: 'sign-in.ts',
    from: 'issued !== found && issued.expiresAt > now',
    to: 'issued.expiresAt > now',
    tests: ['tests/sign-in.test.ts'],
  },
]
