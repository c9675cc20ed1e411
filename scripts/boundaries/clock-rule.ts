import { posix } from 'node:path'

import type { Node } from 'oxc-parser'

import { PACKAGE_RULES } from './arrows.ts'
import { GLOBAL_OBJECTS, isValue, propertyName, walk } from './syntax-walk.ts'
import type { Violation } from './violation.ts'
import type { SourceFile, Workspace } from './workspace.ts'

const TIMER_MODULES = /^(node:)?(timers|timers\/promises|perf_hooks)$|^temporal-polyfill\/.*\bNow$/
const TIMER_GLOBALS = new Set(['setTimeout', 'setInterval', 'performance'])
/** Reads of a property that tell or await the time, as `object.property`. */
const TIME_PROPERTIES = new Set(['process.hrtime', 'process.uptime', 'AbortSignal.timeout'])
/** The properties of `Date` that do not depend on the current time. */
const PURE_DATE_PROPERTIES = new Set(['UTC', 'parse', 'prototype'])

/** The clock is read and timers are set only in a file named `clock.ts`, so that all other code takes the time from its caller. */
export function checkClock({ files }: Workspace): Violation[] {
  return files
    .values()
    .filter((file) => !file.isTest && !isClockFile(file))
    .flatMap((file) => [...clockImports(file), ...clockReads(file)])
    .toArray()
}

function isClockFile(file: SourceFile): boolean {
  return posix.basename(file.path) === 'clock.ts' && PACKAGE_RULES[file.package.id]?.clock === 'injected'
}

function clockImports(file: SourceFile): Violation[] {
  return file.imports
    .filter(({ specifier }) => TIMER_MODULES.test(specifier))
    .map(({ specifier, line }) => violation(file, line, specifier))
}

function clockReads(file: SourceFile): Violation[] {
  const violations: Violation[] = []
  walk(file.program, (node, parent) => {
    const read = clockRead(node, parent)
    if (read !== undefined) violations.push(violation(file, file.lineAt(node.start), read))
  })
  return violations
}

function violation(file: SourceFile, line: number, what: string): Violation {
  const place = PACKAGE_RULES[file.package.id]?.clock === 'none' ? 'nowhere in this package' : 'only in a clock.ts'
  return { rule: 'clock', file: file.path, line, message: `${what} is allowed ${place}: take the time as a parameter` }
}

function clockRead(node: Node, parent: Node | undefined): string | undefined {
  if (node.type === 'MemberExpression') {
    const object = node.object.type === 'Identifier' ? node.object.name : undefined
    const property = propertyName(node)
    if (object === undefined || property === undefined) return undefined
    if (GLOBAL_OBJECTS.has(object)) return property === 'Date' || TIMER_GLOBALS.has(property) ? property : undefined
    return TIME_PROPERTIES.has(`${object}.${property}`) ? `${object}.${property}` : undefined
  }
  if (node.type !== 'Identifier') return undefined
  // Any identifier `Now` counts, so that neither an alias of Temporal nor destructuring hides a call.
  if (node.name === 'Now') return 'Temporal.Now'
  if (!isValue(node, parent)) return undefined
  if (TIMER_GLOBALS.has(node.name)) return node.name
  return node.name === 'Date' && !isPureDate(node, parent) ? 'Date without a given time' : undefined
}

/** `new Date(given)`, `Date.UTC(…)`, `x instanceof Date`: uses of Date that do not ask what time it is. */
function isPureDate(node: Node, parent: Node | undefined): boolean {
  switch (parent?.type) {
    case 'NewExpression':
      return parent.callee === node && parent.arguments.length > 0 && parent.arguments[0]?.type !== 'SpreadElement'
    case 'MemberExpression':
      return PURE_DATE_PROPERTIES.has(propertyName(parent) ?? '')
    case 'BinaryExpression':
      return parent.operator === 'instanceof' && parent.right === node
    default:
      return false
  }
}
