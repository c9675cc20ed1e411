import type { Node } from 'oxc-parser'

import { findTimes, timeOf } from './measured-times.ts'
import { propertyName, walk } from './syntax-walk.ts'
import type { Violation } from './violation.ts'
import type { SourceFile, Workspace } from './workspace.ts'

const TEST_FILES = /^((?:packages|modules)\/[^/]+\/)?tests\/|\.test\.tsx?$/
const ORDER = /^[<>]=?$/
const ORDER_MATCHERS = /^toBe((Less|Greater)Than(OrEqual)?|CloseTo)$/

/** No test compares a time that it measured: on a busy machine it would fail. Measurements belong to benches. */
export function checkStopwatches({ files }: Workspace): Violation[] {
  return files
    .values()
    .filter(({ path }) => TEST_FILES.test(path))
    .flatMap(comparedTimes)
    .toArray()
}

function comparedTimes(file: SourceFile): Violation[] {
  const times = findTimes(file.program)
  const violations: Violation[] = []
  walk(file.program, (node) => {
    const [one, other] = comparedBy(node).map((side) => timeOf(side, times))
    // A comparison with one measured instant (`createdAt >= before`) is allowed: it holds on a slow machine too.
    if (one !== 'duration' && other !== 'duration' && (one === undefined || one !== other)) return
    const message = 'a measured time is compared: count steps, rows or round trips, or move the measurement to bench/'
    violations.push({ rule: 'stopwatch', file: file.path, line: file.lineAt(node.start), message })
  })
  return violations
}

/** The two sides of `a < b` and of `expect(a).toBeLessThan(b)`; empty for any other node. */
function comparedBy(node: Node): Node[] {
  if (node.type === 'BinaryExpression' && ORDER.test(node.operator)) return [node.left, node.right]
  if (node.type !== 'CallExpression' || node.callee.type !== 'MemberExpression') return []
  if (!ORDER_MATCHERS.test(propertyName(node.callee) ?? '')) return []
  let subject: Node = node.callee.object
  while (subject.type === 'MemberExpression') subject = subject.object // `.not`, `.resolves`
  return subject.type === 'CallExpression' ? [...subject.arguments.slice(0, 1), ...node.arguments.slice(0, 1)] : []
}
