/**
 * Removes guards one at a time from a copy of the sources and expects the tests to notice: a test that stays green without
 * its guard proves nothing. Run: `npm run test:mutations`, or `npm run test:mutations -- core` for one package. Takes
 * minutes, so it is not part of `npm test`.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, constants, cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { CADENCE_MUTATIONS } from './mutations/cadence.ts'
import { CORE_MUTATIONS } from './mutations/core.ts'
import type { Mutation } from './mutations/mutation.ts'
import { POSTGRES_MUTATIONS } from './mutations/postgres.ts'
import { SERVER_MUTATIONS } from './mutations/server.ts'
import { TARGETS_MUTATIONS } from './mutations/targets.ts'

const REPOSITORY = join(import.meta.dirname, '..')
const SUITES: Readonly<Record<string, readonly Mutation[]>> = {
  cadence: CADENCE_MUTATIONS,
  core: CORE_MUTATIONS,
  targets: TARGETS_MUTATIONS,
  postgres: POSTGRES_MUTATIONS,
  server: SERVER_MUTATIONS,
}
// Fewer cases than usual: a guard worth having is missed soon.
const RUNS = '300'
// More than in `npm test`: what a guard of concurrency keeps out does not happen in every run.
const MODEL = { MODEL_RUNS: '12', MODEL_STEPS: '500' }
const TIMEOUT_MS = 180_000
const BASELINE_TIMEOUT_MS = 1_800_000
const OUTPUT_MAX = 64 * 1024 * 1024
const COPY_OPTIONS = { recursive: true, verbatimSymlinks: true, mode: constants.COPYFILE_FICLONE }

function copyTree(): string {
  const root = mkdtempSync(join(tmpdir(), 'carillon-mutations-'))
  // As root, Postgres runs as another user, who has to get to its binaries.
  chmodSync(root, 0o711)
  const files = execFileSync('git', ['ls-files', '-z'], { cwd: REPOSITORY, encoding: 'utf8' })
    .split('\0')
    .filter(Boolean)
  for (const file of files) cpSync(join(REPOSITORY, file), join(root, file))
  // Copied, not linked: of a linked package there would be two, and an error of one is no instance of the other's class.
  for (const folder of ['', ...Object.keys(SUITES).map((name) => `packages/${name}`)]) {
    const modules = join(REPOSITORY, folder, 'node_modules')
    if (existsSync(modules)) cpSync(modules, join(root, folder, 'node_modules'), COPY_OPTIONS)
  }
  return root
}

interface TestRun {
  /** False if a test failed, or if the tests did not end in time. */
  readonly isGreen: boolean
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
  return { isGreen: status === 0, output: `${stdout}${stderr}` }
}

interface Candidate {
  readonly guard: string
  readonly path: string
  readonly source: string
  readonly mutated: string
  readonly tests: readonly string[]
}

/** Throws if the mutation no longer fits the tree: a text or a test file that is missing would pass for a test that noticed. */
function candidateOf(root: string, name: string, { guard, file, from, to, tests }: Mutation): Candidate {
  const path = join(root, 'packages', name, 'src', file)
  const source = readFileSync(path, 'utf8')
  if (!source.includes(from)) throw new Error(`${name}: ${file} no longer contains: ${from}`)
  const missing = tests?.find((test) => !existsSync(join(root, 'packages', name, test)))
  if (missing !== undefined) throw new Error(`packages/${name} has no ${missing}`)
  const files = tests?.map((test) => `packages/${name}/${test}`) ?? [`packages/${name}`]
  return { guard: `${name}: ${guard}`, path, source, mutated: source.replace(from, () => to), tests: files }
}

function tryMutation(root: string, { path, source, mutated, tests }: Candidate): boolean {
  writeFileSync(path, mutated)
  try {
    return !runTests(root, tests, TIMEOUT_MS).isGreen
  } finally {
    writeFileSync(path, source)
  }
}

const wanted = process.argv.slice(2)
const unknown = wanted.filter((name) => !(name in SUITES))
if (unknown.length > 0) {
  throw new RangeError(`unknown package ${unknown.join(', ')}: expected ${Object.keys(SUITES).join(', ')}`)
}
const names = wanted.length > 0 ? wanted : Object.keys(SUITES)
const root = copyTree()
const counts = { noticed: 0, survived: 0 }
const startedAt = performance.now()
try {
  const candidates = names.flatMap((name) => (SUITES[name] ?? []).map((mutation) => candidateOf(root, name, mutation)))
  const tests = [...new Set(candidates.flatMap((candidate) => candidate.tests))]
  process.stdout.write(`${candidates.length} guards; first the ${tests.length} test files and folders as they are\n`)
  const baseline = runTests(root, tests, BASELINE_TIMEOUT_MS)
  if (!baseline.isGreen) throw new Error(`the tests fail before anything was removed:\n${baseline.output}`)
  for (const [index, candidate] of candidates.entries()) {
    const verdict = tryMutation(root, candidate) ? 'noticed' : 'survived'
    counts[verdict] += 1
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(0).padStart(5)
    const mark = verdict === 'noticed' ? 'noticed ' : 'SURVIVED'
    process.stdout.write(`${seconds} s  ${index + 1}/${candidates.length}  ${mark}  ${candidate.guard}\n`)
  }
} finally {
  rmSync(root, { recursive: true })
}
process.stdout.write(`${counts.noticed} noticed, ${counts.survived} survived\n`)
process.exitCode = counts.survived === 0 ? 0 : 1
