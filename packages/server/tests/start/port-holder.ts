import { readFileSync } from 'node:fs'
import { basename } from 'node:path'

/** How an error names this process as the holder of a port. Only Linux shows which process it is. */
export function holder(): string {
  if (process.platform !== 'linux') return 'another program'
  const [command = ''] = readFileSync('/proc/self/cmdline', 'utf8').split('\0')
  return `${basename(command)} (process ${process.pid})`
}
