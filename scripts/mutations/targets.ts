import type { Mutation } from './mutation.ts'

/** Each of these must turn a test red: `npm run test:mutations -- targets`. */
export const TARGETS_MUTATIONS: readonly Mutation[] = [
  {
    guard: 'a host outside of the allow-list is refused at dispatch',
    file: 'http/http-target.ts',
    from: 'if (url === null || !isAllowed(url)) return hostRefusal(url)',
    to: 'if (url === null) return hostRefusal(url)',
    tests: ['tests/http-allow-list.test.ts'],
  },
  {
    guard: 'a host outside of the allow-list is refused at create',
    file: 'http/http-target.ts',
    from: 'return url !== null && isAllowed(url) ? [] : [hostProblem(url)]',
    to: 'return url !== null ? [] : [hostProblem(url)]',
    tests: ['tests/http-allow-list.test.ts'],
  },
  {
    guard: 'a redirect is a final failure',
    file: 'http/outcome.ts',
    from: 'if (status >= 300 && status < 400) {',
    to: 'if (status === 0) {',
    tests: ['tests/http-answers.test.ts'],
  },
  {
    guard: 'I5: the key is sent',
    file: 'http/request-headers.ts',
    from: "['Idempotency-Key', context.idempotencyKey],",
    to: '',
    tests: ['tests/http-request.test.ts', 'tests/restate.test.ts'],
  },
  {
    guard: 'reserved headers are refused',
    file: 'http/header-rules.ts',
    from: 'const reason = reservedBecause(plain)',
    to: 'const reason = reservedBecause(`x-${plain}`)',
    tests: ['tests/http-spec.test.ts'],
  },
]
