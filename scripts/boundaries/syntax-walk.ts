import { visitorKeys, type Node } from 'oxc-parser'

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
