import { parseSync, type Node } from 'oxc-parser'

import { textOf, walk } from './boundaries/syntax-walk.ts'

const TEST_FUNCTIONS = new Set(['test', 'it'])
const GROUP_FUNCTIONS = new Set(['describe', 'suite'])

export interface TestTitle {
  /** The first argument, with each run of whitespace as one space and `${…}` for each placeholder of a template. */
  readonly text: string
  readonly line: number
  /** True for a test, false for a group of tests. */
  readonly isTest: boolean
  /** The titles of the groups around it, the outermost first. */
  readonly groups: readonly string[]
}

interface TitledCall extends Omit<TestTitle, 'groups'> {
  readonly start: number
  readonly end: number
}

/**
 * The titles of all tests and groups in a file, in order, however their calls are broken into lines: `test('…')`,
 * `test.each(rows)('…')`, `describe.runIf(isLinux)('…')`. A title is a string, a template, several of these joined by `+`, or a
 * constant of the file.
 */
export function testTitles(path: string, source: string): TestTitle[] {
  const { program } = parseSync(path, source)
  const constants = new Map<string, Node>()
  const calls: TitledCall[] = []
  walk(program, (node) => {
    if (node.type === 'VariableDeclarator' && node.id.type === 'Identifier' && node.init !== null) {
      constants.set(node.id.name, node.init)
    }
  })
  walk(program, (node) => {
    if (node.type !== 'CallExpression') return
    const [title] = node.arguments
    const name = calledFunction(node.callee)
    const isTest = name !== undefined && TEST_FUNCTIONS.has(name)
    if (title === undefined || !(isTest || (name !== undefined && GROUP_FUNCTIONS.has(name)))) return
    const text = titleOf(title, constants)?.replaceAll(/\s+/g, ' ')
    if (text === undefined) return
    calls.push({
      text,
      line: source.slice(0, title.start).split('\n').length,
      isTest,
      start: node.start,
      end: node.end,
    })
  })
  return calls.map(({ start, end, ...title }) => ({
    ...title,
    groups: calls.filter((other) => other.start < start && end < other.end && !other.isTest).map(({ text }) => text),
  }))
}

/** `test` for `test`, `test.skip`, `test.each(rows)` and a tagged `` test.each`…` ``. */
function calledFunction(callee: Node): string | undefined {
  switch (callee.type) {
    case 'Identifier':
      return callee.name
    case 'MemberExpression':
      return calledFunction(callee.object)
    case 'CallExpression':
      return calledFunction(callee.callee)
    case 'TaggedTemplateExpression':
      return calledFunction(callee.tag)
    default:
      return undefined
  }
}

/** Undefined for an argument that is no text, such as the rows of `test.each(rows)`. */
function titleOf(node: Node, constants: ReadonlyMap<string, Node>): string | undefined {
  const text = textOf(node)
  if (text !== undefined) return text
  if (node.type === 'TemplateLiteral') return node.quasis.map(({ value }) => value.cooked ?? value.raw).join('${…}')
  if (node.type === 'BinaryExpression' && node.operator === '+') {
    const [left, right] = [titleOf(node.left, constants), titleOf(node.right, constants)]
    return left === undefined && right === undefined ? undefined : `${left ?? '${…}'}${right ?? '${…}'}`
  }
  const value = node.type === 'Identifier' ? constants.get(node.name) : undefined
  return value === undefined || value.type === 'Identifier' ? undefined : titleOf(value, constants)
}
