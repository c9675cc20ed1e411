import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { expect, onTestFinished, test, vi } from 'vitest'

import { hasRelease, lastTag, sweepPackings } from './previous-release.ts'

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'carillon-releases-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return folder
}

/** A repository with one commit for each list of tags. */
function repositoryWith(...tagged: readonly (readonly string[])[]): string {
  const cwd = temporaryFolder()
  const identity = ['-c', 'user.name=A', '-c', 'user.email=a@example.com', '-c', 'commit.gpgSign=false']
  const git = (...args: readonly string[]) => execFileSync('git', [...identity, ...args], { cwd, stdio: 'ignore' })
  git('init')
  for (const tags of tagged) {
    git('commit', '--allow-empty', '--message', 'a commit')
    for (const tag of tags) git('tag', '--no-sign', tag)
  }
  return cwd
}

test.each<[what: string, tagged: readonly (readonly string[])[], expected: string | undefined]>([
  ['there is no tag', [[]], undefined],
  ['a version follows its release candidate', [['v0.1.0-rc.1'], ['v0.1.0'], []], 'v0.1.0'],
  ['a release candidate follows the last version', [['v0.1.0'], ['v0.2.0-rc.1'], []], 'v0.2.0-rc.1'],
  ['the versions have two digits', [['v0.9.0'], ['v0.10.0'], []], 'v0.10.0'],
  ['this commit is the next version', [['v0.1.0'], ['v0.2.0']], 'v0.1.0'],
  ['another tag is no version', [['v0.1.0'], ['nightly'], []], 'v0.1.0'],
])('the last release is chosen when %s', (_, tagged, expected) => {
  expect(lastTag(repositoryWith(...tagged))).toBe(expected)
})

test('without the release to upgrade the upgrade tests are skipped, and on CI they fail', () => {
  expect(hasRelease({ commit: 'abc', isTagged: true }, { CI: 'true' })).toBe(true)
  const print = vi.spyOn(process.stderr, 'write').mockReturnValue(true)
  expect(hasRelease(undefined, {})).toBe(false)
  expect(print).toHaveBeenCalledExactlyOnceWith(
    expect.stringMatching(/^The upgrade tests are skipped: git does not have/),
  )
  expect(() => hasRelease(undefined, { CI: 'true' })).toThrow(
    /^The upgrade tests cannot run: git does not have commit [0-9a-f]{40}/,
  )
})

test('packings of processes that have ended are removed, and no others', () => {
  const cache = temporaryFolder()
  const { pid: ended } = spawnSync(process.execPath, ['--version'])
  const kept = [`packing-${process.pid}-abcdef`, '0123456789abcdef']
  for (const name of [...kept, `packing-${ended}-abcdef`]) mkdirSync(join(cache, name, 'tarballs'), { recursive: true })

  sweepPackings(cache)

  expect(readdirSync(cache).toSorted()).toEqual(kept.toSorted())
})
