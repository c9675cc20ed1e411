import type { Mutation } from './mutation.ts'

/** Each of these must turn a test red: `npm run test:mutations -- postgres`. Some are noticed only if root runs them. */
export const POSTGRES_MUTATIONS: readonly Mutation[] = [
  {
    guard: 'a claim is the process’s that made it, not of a later one with its id',
    file: 'directory-claim.ts',
    from: "(startOf(pid) === '' || hashedStart(pid) === start)",
    to: 'true',
    tests: ['tests/rough-treatment.test.ts'],
  },
  {
    guard: 'a process that finds another claim gives way',
    file: 'directory-claim.ts',
    from: '.find(({ name }) => name !== claim)',
    to: '.find(() => false)',
    tests: ['tests/start-postgres.test.ts'],
  },
  {
    guard: 'a zombie is not alive',
    file: 'process-table.ts',
    from: "return state !== 'Z' && state !== 'X'",
    to: "return state !== 'X'",
    tests: ['tests/rough-treatment.test.ts'],
  },
  {
    guard: 'a server that was started by hand is left alone',
    file: 'start-postgres.ts',
    from: 'if (!isOrphan || !commandLineOf(pid).includes(SIGNATURE)) throw error',
    to: 'if (!isOrphan) throw error',
    tests: ['tests/rough-treatment.test.ts'],
  },
  {
    guard: 'an orphan whose guard was killed is told to stop',
    file: 'start-postgres.ts',
    from: "  process.kill(pid, 'SIGINT')",
    to: '  void pid',
    tests: ['tests/start-postgres.test.ts'],
  },
  {
    guard: 'no link is followed out of a data directory that root takes over',
    file: 'data-directory.ts',
    from: 'if (entry.isDirectory()) chownTree(path, user)',
    to: 'if (statSync(path).isDirectory()) chownTree(path, user)',
    tests: ['tests/rough-treatment.test.ts'],
  },
  {
    guard: 'a server below a closed folder does not walk its path',
    file: 'data-directory.ts',
    from: 'return obstacle === undefined ? folder : WORKING_FOLDER',
    to: 'return folder',
    tests: ['tests/closed-folders.test.ts'],
  },
  {
    guard: 'a data directory is looked at where it really is',
    file: 'data-directory.ts',
    from: '    path = realpathSync(path)\n',
    to: '',
    tests: ['tests/rough-treatment.test.ts'],
  },
  {
    guard: 'a new database is made in a folder that no earlier initdb writes to',
    file: 'data-directory.ts',
    from: "`${STAGING_PREFIX}-${randomBytes(4).toString('hex')}`",
    to: 'STAGING_PREFIX',
    tests: ['tests/rough-treatment.test.ts'],
  },
  {
    guard: 'initdb ends with the process that started it',
    file: 'server-process.ts',
    from: '  void guard(child, exited, options)\n  const code',
    to: '  const code',
    tests: ['tests/rough-treatment.test.ts'],
  },
  {
    guard: 'a copy of the program that another user owns is not run',
    file: 'program-copy.ts',
    from: 'if (stat.isDirectory() && stat.uid === (process.geteuid?.() ?? stat.uid)) return',
    to: 'return',
    tests: ['tests/rough-treatment.test.ts'],
  },
  {
    guard: 'a copy of the program can be read by the server’s user, whatever the umask was',
    file: 'program-copy.ts',
    from: '  openForReading(folder)\n',
    to: '',
    tests: ['tests/rough-treatment.test.ts'],
  },
]
