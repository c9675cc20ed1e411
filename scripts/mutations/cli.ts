import type { Mutation } from './mutation.ts'

/** Guards of the command line. */
export const CLI_MUTATIONS: readonly Mutation[] = [
  {
    guard: 'an import leaves a schedule alone that a user has changed',
    file: 'import/entry-state.ts',
    from: '    if (!isOfImport) return false\n',
    to: '',
    tests: ['src/import/entry-state.test.ts'],
  },
  {
    guard: 'an import reads the older pages of a history',
    file: 'import/entry-state.ts',
    from: 'if (nextCursor === null) return true',
    to: 'if (nextCursor === null || read === 0) return true',
    tests: ['src/import/entry-state.test.ts'],
  },
  {
    guard: 'an import reads a bounded part of a history',
    file: 'import/entry-state.ts',
    from: 'read < HISTORY_READ_MAX',
    to: 'read < HISTORY_READ_MAX * 10',
    tests: ['src/import/entry-state.test.ts'],
  },
]
