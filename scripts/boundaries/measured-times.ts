import type { Node } from 'oxc-parser'

import { childrenOf, propertyName, walk } from './syntax-walk.ts'

/** What an expression gets from the clock: an instant, the time between two instants, or neither. */
type Time = 'instant' | 'duration' | undefined

/** Names in a file, each with the kind of time it stands for. A name counts as the same in all scopes. */
type Times = ReadonlyMap<string, Time>

const CLOCK_CALLS =
  /^(performance\.now|Date\.now|(process\.)?hrtime|hrtime\.bigint|process\.uptime|systemClock\.now|Now\.\w+)$/
const CONVERSIONS = /^(Math\.\w+|Number|BigInt)$/

/** Finds the names that stand for times. Walks the file again while it finds more, because a function may be used above its declaration. */
export function findTimes(program: Node): Times {
  const times = new Map<string, Time>()
  for (let known = -1; known < times.size;) {
    known = times.size
    walk(program, (node) => {
      for (const [target, value] of assignmentsIn(node)) {
        const time = timeOf(value, times)
        // An instant that is stored in an object is mostly the time for which something is scheduled, so it does not count.
        if (time === 'duration' || (time === 'instant' && target.type === 'Identifier' && node.type !== 'Property')) {
          for (const name of namesIn(target)) times.set(name, longest([times.get(name), time]))
        }
      }
    })
  }
  return times
}

function assignmentsIn(node: Node): readonly (readonly [target: Node, value: Node])[] {
  if (node.type === 'VariableDeclarator' && node.init) return [[node.id, node.init]]
  if (node.type === 'AssignmentExpression') return [[node.left, node.right]]
  if (node.type === 'Property') return [[node.key, node.value]]
  if (node.type === 'FunctionDeclaration' && node.id) return [[node.id, node]]
  if (node.type !== 'CallExpression' || node.callee.type !== 'MemberExpression') return []
  const { object } = node.callee
  return propertyName(node.callee) === 'push' ? node.arguments.map((value) => [object, value] as const) : []
}

/** The names that an assignment to `target` sets: `took` for `took`, `result.took` and `[took]`. */
function namesIn(target: Node): string[] {
  if (target.type === 'ArrayPattern') return childrenOf(target).flatMap(namesIn)
  const name = target.type === 'MemberExpression' ? propertyName(target) : nameOf(target)
  return name ? [name] : []
}

/** What an expression gets from the clock, by itself or through names of its file. */
export function timeOf(node: Node, times: Times): Time {
  const within = (nodes: readonly Node[]): Time => longest(nodes.map((inner) => timeOf(inner, times)))
  switch (node.type) {
    case 'Identifier':
      return times.get(node.name)
    case 'MemberExpression':
      if (times.get(propertyName(node) ?? '') === 'duration') return 'duration'
      return propertyName(node) === 'length' ? undefined : timeOf(node.object, times)
    case 'CallExpression':
      return calledTime(node, within(node.arguments), timeOf(node.callee, times))
    case 'NewExpression':
      return nameOf(node.callee) === 'Date' && node.arguments.every((given) => timeOf(given, times))
        ? 'instant'
        : undefined
    case 'ArrowFunctionExpression':
    case 'FunctionExpression':
    case 'FunctionDeclaration':
      return node.body?.type === 'BlockStatement' ? within(returnedBy(node.body)) : within(childrenOf(node).slice(-1))
    case 'ObjectExpression':
    case 'TemplateLiteral':
    case 'TaggedTemplateExpression':
      return undefined
    default: {
      const time = within(childrenOf(node))
      // `Date.now() - start` is a duration, `Date.now() - 5000` another instant.
      const isElapsed = node.type === 'BinaryExpression' && node.operator === '-' && !isConstant(node.right)
      return time === 'instant' && isElapsed ? 'duration' : time
    }
  }
}

function calledTime({ callee, arguments: given }: Node & { type: 'CallExpression' }, ofGiven: Time, own: Time): Time {
  const name = nameOf(callee)
  // Called with an earlier reading, `process.hrtime` returns the time since then.
  if (CLOCK_CALLS.test(name)) return name === 'process.hrtime' && given.length > 0 ? 'duration' : 'instant'
  // Another function that takes an instant mostly schedules something, so its result does not count as an instant.
  return CONVERSIONS.test(name) || ofGiven === 'duration' ? ofGiven : own
}

function returnedBy(body: Node): Node[] {
  const returned: Node[] = []
  walk(body, (node) => {
    if (node.type === 'ReturnStatement' && node.argument) returned.push(node.argument)
  })
  return returned
}

function longest(times: readonly Time[]): Time {
  return times.includes('duration') ? 'duration' : times.find((time) => time !== undefined)
}

function isConstant(node: Node): boolean {
  if (node.type === 'BinaryExpression') return isConstant(node.left) && isConstant(node.right)
  return node.type === 'Literal' || /^[A-Z][A-Z\d_]*$/.test(nameOf(node))
}

/** The last two parts of a dotted name: `Date.now` of `globalThis.Date.now`. */
function nameOf(node: Node): string {
  if (node.type === 'Identifier') return node.name
  if (node.type !== 'MemberExpression') return ''
  return `${nameOf(node.object).split('.').at(-1) ?? ''}.${propertyName(node) ?? ''}`
}
