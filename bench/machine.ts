import { existsSync, readFileSync } from 'node:fs'
import { cpus, release, totalmem, type as osType } from 'node:os'

import type { Machine } from './results.ts'

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

function distribution(): string | undefined {
  const path = '/etc/os-release'
  return existsSync(path) ? /^PRETTY_NAME="?([^"\n]+)"?$/m.exec(readFileSync(path, 'utf8'))?.[1] : undefined
}
