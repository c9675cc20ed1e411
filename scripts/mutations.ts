/**
 * Removes guards one at a time from a copy of the sources and expects the tests to notice: a test that stays green without
 * its guard proves nothing. Takes an hour, so it is not part of `npm test`. Run:
 *
 *   npm run test:mutations                     all guards
 *   npm run test:mutations -- core http        the guards of these packages
 *   npm run test:mutations -- --part 1/2       every second guard, for two runs side by side or one after the other
 *   npm run test:mutations -- --since HEAD~3   the guards in files that have changed since that commit
 *   npm run test:mutations -- --tests-pass     without running the tests as they are first: `npm test` has just passed
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, constants, cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join, relative } from 'node:path'
import { parseArgs } from 'node:util'

import type { Mutation } from './mutations/mutation.ts'
import { SUITES } from './mutations/suites.ts'

const REPOSITORY = join(import.meta.dirname, '..')
// The cases that each property test of cadence tries, fewer than in `npm test`: without its guard, a test fails after few.
const RUNS = '300'
// The model test tries more than in `npm test`: a fault that a concurrency guard prevents does not happen in every run.
const MODEL = { MODEL_RUNS: '12', MODEL_STEPS: '500' }
/** Only an overloaded machine takes this long: a test that hangs is red after a limit of its own (vitest.config.ts). */
const TIMEOUT_MS = 300_000
const BASELINE_TIMEOUT_MS = 1_800_000
const OUTPUT_MAX = 64 * 1024 * 1024
/** The compiler's errors for text that is no TypeScript, and for a name that is not defined: plain, with a suggestion, or as a shorthand. */
const BROKEN = /error TS(?:1\d{3}|2304|2552|18004):/
const COPY_OPTIONS = { recursive: true, verbatimSymlinks: true, mode: constants.COPYFILE_FICLONE }

function copyTree(): string {
  const root = mkdtempSync(join(tmpdir(), 'carillon-mutations-'))
  // If this script runs as root, Postgres runs as another user, who must be able to reach the binaries in this folder.
  chmodSync(root, 0o711)
  const files = execFileSync('git', ['ls-files', '-z'], { cwd: REPOSITORY, encoding: 'utf8' })
    .split('\0')
    .filter(Boolean)
  for (const file of files) cpSync(join(REPOSITORY, file), join(root, file))
  // Copied, not linked: Node would load a linked package twice, and an error of one copy is no instance of the other's class.
  for (const folder of ['', ...Object.keys(SUITES)]) {
    const modules = join(REPOSITORY, folder, 'node_modules')
    if (existsSync(modules)) cpSync(modules, join(root, folder, 'node_modules'), COPY_OPTIONS)
  }
  return root
}

/** Includes changes that are not committed yet. */
function filesChangedSince(commit: string): ReadonlySet<string> {
  const options = { cwd: REPOSITORY, encoding: 'utf8' } as const
  return new Set(execFileSync('git', ['diff', '--name-only', commit, '--'], options).split('\n'))
}

interface TestRun {
  /** False if a test failed, or if the tests did not end in time. */
  readonly isGreen: boolean
  /** True if the tests did not end in time. */
  readonly timedOut: boolean
  readonly output: string
}

function runTests(root: string, tests: readonly string[], timeout: number): TestRun {
  const vitest = join(REPOSITORY, 'node_modules/vitest/vitest.mjs')
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [vitest, 'run', '--configLoader', 'native', '--reporter=dot', ...tests, '--bail=1'],
    {
      cwd: root,
      env: { ...process.env, CADENCE_RUNS: RUNS, ...MODEL },
      timeout,
      stdio: ['ignore', 'pipe', 'pipe'],
      encoding: 'utf8',
      maxBuffer: OUTPUT_MAX,
    },
  )
  return { isGreen: status === 0, timedOut: status === null, output: `${stdout}${stderr}` }
}

interface Candidate {
  readonly guard: string
  readonly path: string
  readonly source: string
  readonly mutated: string
  readonly tests: readonly string[]
}

/**
 * Throws if the mutation no longer fits the sources. Without its text, nothing would be mutated. Without its test file, the
 * run would fail as if a test had noticed.
 */
function candidateOf(root: string, folder: string, { guard, file, from, to, tests }: Mutation): Candidate {
  const path = join(root, folder, 'src', file)
  const source = readFileSync(path, 'utf8')
  if (!source.includes(from)) throw new Error(`${folder}: ${file} no longer contains: ${from}`)
  const missing = tests?.find((test) => !existsSync(join(root, folder, test)))
  if (missing !== undefined) throw new Error(`${folder} has no ${missing}`)
  const files = tests?.map((test) => `${folder}/${test}`) ?? [folder]
  return { guard: `${basename(folder)}: ${guard}`, path, source, mutated: source.replace(from, () => to), tests: files }
}

/**
 * Throws if a mutation cannot run, or uses a name that its file does not know: the tests would fail, whatever they check. Each
 * round type-checks one mutation of every file. Other type errors are part of a mutation: it may leave a name unused.
 */
function checkNames(root: string, candidates: readonly Candidate[]): void {
  const byFile = Map.groupBy(candidates, ({ path }) => path)
  for (let round = 0; ; round += 1) {
    const tried = [...byFile.values()].flatMap((ofFile) => ofFile[round] ?? [])
    if (tried.length === 0) return
    for (const { path, mutated } of tried) writeFileSync(path, mutated)
    const { stdout } = spawnSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '--build'], {
      cwd: root,
      encoding: 'utf8',
      maxBuffer: OUTPUT_MAX,
    })
    for (const { path, source } of tried) writeFileSync(path, source)
    const unknown = stdout.split('\n').find((line) => BROKEN.test(line))
    if (unknown !== undefined) throw new Error(`a mutation cannot run, whatever the tests check: ${unknown}`)
  }
}

type Verdict = 'noticed' | 'timed out' | 'SURVIVED'

function tryMutation(root: string, { path, source, mutated, tests }: Candidate): Verdict {
  writeFileSync(path, mutated)
  try {
    const { isGreen, timedOut } = runTests(root, tests, TIMEOUT_MS)
    if (isGreen) return 'SURVIVED'
    return timedOut ? 'timed out' : 'noticed'
  } finally {
    writeFileSync(path, source)
  }
}

const { values, positionals: wanted } = parseArgs({
  allowPositionals: true,
  options: {
    part: { type: 'string', default: '1/1' },
    since: { type: 'string' },
    'tests-pass': { type: 'boolean', default: false },
  },
})
const folders = Object.keys(SUITES)
const known = folders.map((folder) => basename(folder))
const unknown = wanted.filter((name) => !known.includes(name))
if (unknown.length > 0) {
  throw new RangeError(`expected packages of ${known.join(', ')}, got ${unknown.join(', ')}`)
}
const [part = 0, parts = 0] = (/^([1-9])\/([1-9])$/.exec(values.part) ?? []).slice(1).map(Number)
if (part === 0 || part > parts) throw new RangeError(`expected --part as in 1/2, got ${values.part}`)
const chosen = folders.filter((folder) => wanted.length === 0 || wanted.includes(basename(folder)))
const changed = values.since === undefined ? undefined : filesChangedSince(values.since)
const root = copyTree()
let candidates: readonly Candidate[] = []
const counts: Record<Verdict, number> = { noticed: 0, 'timed out': 0, SURVIVED: 0 }
const startedAt = performance.now()
try {
  candidates = chosen
    .flatMap((folder) => (SUITES[folder] ?? []).map((mutation) => candidateOf(root, folder, mutation)))
    .filter(({ path }) => changed?.has(relative(root, path)) !== false)
    .filter((_, index) => index % parts === part - 1)
  checkNames(root, candidates)
  const tests = [...new Set(candidates.flatMap((candidate) => candidate.tests))]
  process.stdout.write(`${candidates.length} guards, ${tests.length} test files and folders\n`)
  if (!values['tests-pass']) {
    const baseline = runTests(root, tests, BASELINE_TIMEOUT_MS)
    if (!baseline.isGreen) throw new Error(`the tests fail before anything was removed:\n${baseline.output}`)
  }
  for (const [index, candidate] of candidates.entries()) {
    const verdict = tryMutation(root, candidate)
    counts[verdict] += 1
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(0).padStart(5)
    process.stdout.write(`${seconds} s  ${index + 1}/${candidates.length}  ${verdict.padEnd(9)}  ${candidate.guard}\n`)
  }
} finally {
  rmSync(root, { recursive: true })
}
process.stdout.write(
  `${counts.noticed} noticed, ${counts.SURVIVED} survived, ${counts['timed out']} not known: the tests did not end\n`,
)
process.exitCode = counts.noticed === candidates.length ? 0 : 1
