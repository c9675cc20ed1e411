import { readFileSync } from 'node:fs'
import { basename } from 'node:path'

/** What a port that this process holds is said to be in use by. Only Linux tells. */
export function holder(): string {
  if (process.platform !== 'linux') return 'another program'
  const [command = ''] = readFileSync('/proc/self/cmdline', 'utf8').split('\0')
  return `${basename(command)} (process ${process.pid})`
}
