/**
 * Removes guards one at a time from a copy of the sources and expects the tests to notice: a test that stays green without
 * its guard proves nothing. Run: `npm run test:mutations`. Takes minutes, so it is not part of `npm test`.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { CADENCE_MUTATIONS } from './mutations/cadence.ts'

const REPOSITORY = join(import.meta.dirname, '..')
// Fewer cases than usual: a guard worth having is missed soon.
const RUNS = '300'
const TIMEOUT_MS = 180_000

function copyTree(): string {
  const root = mkdtempSync(join(tmpdir(), 'carillon-mutations-'))
  const files = execFileSync('git', ['ls-files', '-z'], { cwd: REPOSITORY, encoding: 'utf8' })
    .split('\0')
    .filter(Boolean)
  for (const file of files) cpSync(join(REPOSITORY, file), join(root, file))
  for (const modules of ['node_modules', 'packages/cadence/node_modules']) {
    symlinkSync(join(REPOSITORY, modules), join(root, modules))
  }
  return root
}

/** Whether the tests of a package fail, by themselves or by never ending. */
function isNoticed(root: string, folder: string): boolean {
  const vitest = join(REPOSITORY, 'node_modules/vitest/vitest.mjs')
  const { status } = spawnSync(process.execPath, [vitest, 'run', folder, '--bail=1'], {
    cwd: root,
    env: { ...process.env, CADENCE_RUNS: RUNS },
    timeout: TIMEOUT_MS,
    stdio: 'ignore',
  })
  return status !== 0
}

const root = copyTree()
let survivors = 0
try {
  if (isNoticed(root, 'packages/cadence')) throw new Error('the tests fail before anything was removed')
  for (const { guard, file, from, to } of CADENCE_MUTATIONS) {
    const path = join(root, 'packages/cadence/src', file)
    const source = readFileSync(path, 'utf8')
    if (!source.includes(from)) throw new Error(`${file} has no longer the guard "${guard}"`)
    writeFileSync(path, source.replace(from, to))
    const isKilled = isNoticed(root, 'packages/cadence')
    writeFileSync(path, source)
    if (!isKilled) survivors += 1
    process.stdout.write(`${isKilled ? 'noticed ' : 'SURVIVED'}  ${guard}\n`)
  }
} finally {
  rmSync(root, { recursive: true })
}
process.stdout.write(`${CADENCE_MUTATIONS.length - survivors} noticed, ${survivors} survived\n`)
process.exitCode = survivors === 0 ? 0 : 1
