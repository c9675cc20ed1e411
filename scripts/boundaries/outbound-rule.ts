import type { Node } from 'oxc-parser'

import { OUTBOUND_CALLERS } from './arrows.ts'
import { GLOBAL_OBJECTS, isValue, propertyName, textOf, walk } from './syntax-walk.ts'
import type { Violation } from './violation.ts'
import { npmNameOf, packageIdOf, type SourceFile, type Workspace } from './workspace.ts'

/** The modules that can open a connection, each with the names in it that open none. Types are always allowed. */
const NETWORK_MODULES: Readonly<Record<string, readonly string[]>> = {
  http: ['createServer', 'STATUS_CODES'],
  https: ['createServer'],
  http2: ['createServer', 'createSecureServer'],
  net: ['createServer', 'isIP', 'isIPv4', 'isIPv6'],
  tls: ['createServer'],
  dgram: [],
  undici: [],
  axios: [],
  got: [],
  ky: [],
  'node-fetch': [],
  ws: [],
}
const NETWORK_GLOBALS = new Set(['fetch', 'WebSocket', 'EventSource', 'XMLHttpRequest'])

/**
 * The product calls out only by the guarded client of `packages/outbound`: an address that a tenant chose must be checked. A local name
 * `fetch` counts as the global one, because the rule does not follow scopes.
 */
export function checkOutbound({ files, packages }: Workspace): Violation[] {
  const callers = files
    .values()
    .filter((file) => !file.isTest && file.package.id !== 'outbound')
    .map((file) => ({ file, calls: callsIn(file) }))
    .filter(({ calls }) => calls.length > 0)
    .toArray()
  const broken = callers
    .filter(({ file }) => !(file.path in OUTBOUND_CALLERS))
    .flatMap(({ file, calls }) => calls.map(({ what, start }) => violation(file, file.lineAt(start), what)))
  const unused = Object.keys(OUTBOUND_CALLERS)
    .filter((path) => packages.has(packageIdOf(path)) && !callers.some(({ file }) => file.path === path))
    .map((path) => ({
      rule: 'unused-caller',
      file: 'scripts/boundaries/arrows.ts',
      line: 1,
      message: `${path} calls nothing: remove it from OUTBOUND_CALLERS`,
    }))
  return [...broken, ...unused]
}

function violation(file: SourceFile, line: number, what: string): Violation {
  const message = `${what} can call any address: call out by OutboundClient, or add the file with its reason to OUTBOUND_CALLERS`
  return { rule: 'outbound', file: file.path, line, message }
}

interface Call {
  readonly what: string
  readonly start: number
}

function callsIn(file: SourceFile): Call[] {
  const calls: Call[] = []
  walk(file.program, (node, parent) => {
    const what = importedCall(node) ?? globalCall(node, parent)
    if (what !== undefined) calls.push({ what, start: node.start })
  })
  return calls
}

/** An import or re-export of something that can call out. */
function importedCall(node: Node): string | undefined {
  switch (node.type) {
    case 'ImportDeclaration':
      if (node.importKind === 'type') return undefined
      return refusedName(node.source, node.specifiers.map(importedName))
    case 'ExportNamedDeclaration':
      if (node.source === null || node.exportKind === 'type') return undefined
      return refusedName(
        node.source,
        node.specifiers.map(({ local, exportKind }) => (exportKind === 'type' ? undefined : nameOf(local))),
      )
    case 'ExportAllDeclaration':
      return node.exportKind === 'type' ? undefined : refusedName(node.source, ['*'])
    case 'ImportExpression':
      return refusedName(node.source, ['*'])
    default:
      return undefined
  }
}

type ImportSpecifiers = (Node & { type: 'ImportDeclaration' })['specifiers']

/** `*` for a default or namespace import, through which everything in the module can be reached. */
function importedName(specifier: ImportSpecifiers[number]): string | undefined {
  if (specifier.type !== 'ImportSpecifier') return '*'
  return specifier.importKind === 'type' ? undefined : nameOf(specifier.imported)
}

function nameOf(name: Node): string {
  return name.type === 'Identifier' ? name.name : (textOf(name) ?? '*')
}

/** @param names undefined for a type */
function refusedName(source: Node, names: readonly (string | undefined)[]): string | undefined {
  const specifier = textOf(source) ?? ''
  const allowed = NETWORK_MODULES[npmNameOf(specifier) ?? specifier.replace(/^node:/, '')]
  const refused =
    allowed === undefined ? undefined : names.find((name) => name !== undefined && !allowed.includes(name))
  return refused === undefined ? undefined : `${refused} of ${specifier}`
}

function globalCall(node: Node, parent: Node | undefined): string | undefined {
  if (node.type === 'MemberExpression') {
    const object = node.object.type === 'Identifier' ? node.object.name : ''
    const property = propertyName(node) ?? ''
    return GLOBAL_OBJECTS.has(object) && NETWORK_GLOBALS.has(property) ? `${object}.${property}` : undefined
  }
  if (node.type !== 'Identifier' || !NETWORK_GLOBALS.has(node.name) || !isValue(node, parent)) return undefined
  return node.name
}
