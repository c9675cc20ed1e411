import { visitorKeys, type Node } from 'oxc-parser'

/** The names of the object that has all globals. */
export const GLOBAL_OBJECTS: ReadonlySet<string> = new Set(['globalThis', 'window', 'self', 'global'])
/** Nodes of the type language that wrap a value; below all other `TS…` nodes a name is only a type. */
const TYPED_VALUES = new Set(['TSAsExpression', 'TSSatisfiesExpression', 'TSNonNullExpression'])

/** Visits a node and everything below it, parents first. */
export function walk(node: Node, visit: (node: Node, parent: Node | undefined) => void, parent?: Node): void {
  visit(node, parent)
  for (const child of childrenOf(node)) walk(child, visit, node)
}

/** The nodes directly below a node, in the order of the source. */
export function childrenOf(node: Node): Node[] {
  const fields = new Map<string, unknown>(Object.entries(node))
  const keys = visitorKeys[node.type] ?? []
  return keys.flatMap((key) => fields.get(key)).filter(isNode)
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value
}

/** The value of a string or of a template without placeholders, else undefined. */
export function textOf(node: Node): string | undefined {
  if (node.type === 'Literal' && typeof node.value === 'string') return node.value
  if (node.type === 'TemplateLiteral' && node.expressions.length === 0) return node.quasis[0]?.value.cooked ?? undefined
  return undefined
}

/** `a.b` and `a['b']` to `b`; undefined if the name is computed. */
export function propertyName(node: Node & { type: 'MemberExpression' }): string | undefined {
  if (!node.computed) return node.property.type === 'Identifier' ? node.property.name : undefined
  return node.property.type === 'Literal' ? String(node.property.value) : undefined
}

/** Whether a name stands for a value here, not for a type, a key, or a member of something else. */
export function isValue(node: Node, parent: Node | undefined): boolean {
  if (!parent || (parent.type.startsWith('TS') && !TYPED_VALUES.has(parent.type))) return false
  switch (parent.type) {
    case 'MemberExpression':
      return parent.object === node || parent.computed
    case 'Property':
    case 'MethodDefinition':
    case 'PropertyDefinition':
      return parent.value === node || parent.computed
    default:
      return true
  }
}
