import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { cpus, release, totalmem, type as osType } from 'node:os'
import { join } from 'node:path'

import type { Machine } from './results.ts'

/** The repository of this file. */
export const REPOSITORY = join(import.meta.dirname, '..')
const GIGABYTE = 1024 ** 3

export function describeMachine(): Machine {
  const [cpu] = cpus()
  return {
    cpu: cpu?.model.trim() ?? 'unknown',
    cores: cpus().length,
    memoryGigabytes: Math.round((totalmem() / GIGABYTE) * 10) / 10,
    os: distribution() ?? osType(),
    kernel: `${osType()} ${release()}`,
  }
}

/** The version of a tree, and its commit if there is a git repository: `0.1.0, commit 1a2b3c4`. `-dirty` marks uncommitted changes. */
export function describeCarillon(tree = REPOSITORY): string {
  const { version } = JSON.parse(readFileSync(join(tree, 'package.json'), 'utf8')) as { version: string }
  const git = spawnSync('git', ['describe', '--always', '--dirty', '--exclude=*'], {
    cwd: tree,
    encoding: 'utf8',
  })
  return git.status === 0 ? `${version}, commit ${git.stdout.trim()}` : version
}

function distribution(): string | undefined {
  const path = '/etc/os-release'
  return existsSync(path) ? /^PRETTY_NAME="?([^"\n]+)"?$/m.exec(readFileSync(path, 'utf8'))?.[1] : undefined
}
