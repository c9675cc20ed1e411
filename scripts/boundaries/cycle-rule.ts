import type { Violation } from './violation.ts'
import type { Workspace } from './workspace.ts'

/**
 * No file may import itself through other files. Imports of types count too: they cost nothing when the program runs, but
 * two files that need each other's types cannot be understood, moved or tested apart.
 */
export function checkCycles({ files }: Workspace): Violation[] {
  const reported = new Set<string>()
  const violations: Violation[] = []
  for (const start of files.keys()) {
    const cycle = reported.has(start) ? undefined : shortestCycle(start, files)
    if (!cycle) continue
    for (const path of cycle) reported.add(path)
    const line = files.get(start)?.imports.find(({ target }) => target === cycle[1])?.line ?? 1
    violations.push({ rule: 'cycle', file: start, line, message: cycle.join(' → ') })
  }
  return violations
}

/** The shortest way from a file back to itself, both ends included; breadth first. */
function shortestCycle(start: string, files: Workspace['files']): string[] | undefined {
  const cameFrom = new Map<string, string>()
  const queue = new Set([start])
  for (const path of queue) {
    for (const { target } of files.get(path)?.imports ?? []) {
      if (target === start) return pathTo(path, cameFrom).concat(start)
      if (target === undefined || queue.has(target)) continue
      cameFrom.set(target, path)
      queue.add(target)
    }
  }
  return undefined
}

function pathTo(end: string, cameFrom: ReadonlyMap<string, string>): string[] {
  const path = [end]
  for (let step = cameFrom.get(end); step !== undefined; step = cameFrom.get(step)) path.unshift(step)
  return path
}
