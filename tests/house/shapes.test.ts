import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { drawnNames } from '@carillon/core/testing/walks'
import { parseSync, type Node } from 'oxc-parser'
import { expect, test } from 'vitest'

import { walk } from '../../scripts/boundaries/syntax-walk.ts'
import { REPOSITORY } from './run-tool.ts'

type Declaration = Node & { type: 'TSInterfaceDeclaration' | 'TSTypeAliasDeclaration' }

interface CoreFile {
  /** From `packages/core/src` on. */
  readonly path: string
  readonly imports: readonly string[]
  readonly exported: readonly Declaration[]
}

/** The rooms that a slot passes. */
const WALK = /^(pipeline|policy)\//
/** What a field with the instant of one slot is called. */
const INSTANT = /^(scheduledFor|slot|slotAt|nextSlotAt|dueAt)$/

const FILES = readCore()

test('the architecture page names every exported type that carries one slot through a worker', () => {
  const handedOn = drawnNames('handed from step to step')
  const derived = drawnNames('a part or a variant of one of these')
  const readOnce = drawnNames('read by one file only')
  const cursors = drawnNames('a position between slots')
  const ofHooks = drawnNames('what a hook of a kind gets and answers')

  const found = slotTypes()

  process.stdout.write(`The types of one slot: ${found.map(nameOf).join(', ')}\n`)
  expect(found.map(nameOf).toSorted()).toEqual(
    [...handedOn, ...derived, ...readOnce, ...cursors, ...ofHooks].toSorted(),
  )
  expect(handedOn).toHaveLength(9)
  const known = new Set([...handedOn, ...derived])
  const unrelated = found.filter((each) => derived.includes(nameOf(each)) && !isRelated(each, found, known))
  expect(unrelated.map(nameOf)).toEqual([])
  const readers = (name: string): number => FILES.filter(({ imports }) => imports.includes(name)).length
  expect(readOnce.filter((name) => readers(name) > 1)).toEqual([])
})

/**
 * The exported types that have the instant of one slot, or say what becomes of it (a union by `kind`, a `…Decision`), or derive from
 * such a type. A type that no file of the walk uses is not among them: answers to callers, and slots of paused schedules.
 */
function slotTypes(): Declaration[] {
  const exported = FILES.flatMap((file) => file.exported)
  const isOfSlot = (each: Declaration): boolean =>
    hasInstant(each) ||
    isUnionByKind(each) ||
    nameOf(each).endsWith('Decision') ||
    exported.some((base) => basesOf(each).includes(nameOf(base)) && isOfSlot(base))
  const onTheWalk = FILES.filter(({ path }) => WALK.test(path))
  const used = new Set(onTheWalk.flatMap(({ imports, exported: own }) => [...imports, ...own.map(nameOf)]))
  return exported.filter((each) => isOfSlot(each) && used.has(nameOf(each)))
}

/** True if a type derives from one of the named types, or one of these derives from it. */
function isRelated(declaration: Declaration, found: readonly Declaration[], names: ReadonlySet<string>): boolean {
  const heirs = found.filter((each) => basesOf(each).includes(nameOf(declaration))).map(nameOf)
  return [...basesOf(declaration), ...heirs].some((name) => names.has(name))
}

function hasInstant(declaration: Declaration): boolean {
  const fields: string[] = []
  walk(declaration, (node) => {
    if (node.type === 'TSPropertySignature' && node.key.type === 'Identifier') fields.push(node.key.name)
  })
  return fields.some((field) => INSTANT.test(field))
}

function isUnionByKind(declaration: Declaration): boolean {
  if (declaration.type === 'TSInterfaceDeclaration' || declaration.typeAnnotation.type !== 'TSUnionType') return false
  return declaration.typeAnnotation.types.some(
    (each) =>
      each.type === 'TSTypeLiteral' &&
      each.members.some(
        (member) =>
          member.type === 'TSPropertySignature' && member.key.type === 'Identifier' && member.key.name === 'kind',
      ),
  )
}

/** The types that a type extends, unites, or takes a part of. */
function basesOf(declaration: Declaration): string[] {
  if (declaration.type === 'TSInterfaceDeclaration') {
    return declaration.extends.flatMap(({ expression }) => (expression.type === 'Identifier' ? [expression.name] : []))
  }
  const { typeAnnotation: type } = declaration
  return type.type === 'TSUnionType' || type.type === 'TSIntersectionType' ? type.types.flatMap(named) : named(type)
}

function named(type: Node): string[] {
  if (type.type !== 'TSTypeReference' || type.typeName.type !== 'Identifier') return []
  const [first] = type.typeArguments?.params ?? []
  return first === undefined ? [type.typeName.name] : [type.typeName.name, ...named(first)]
}

function nameOf({ id }: Declaration): string {
  return id.name
}

function readCore(): CoreFile[] {
  const source = join(REPOSITORY, 'packages/core/src')
  return globSync('**/*.ts', { cwd: source, exclude: ['**/*.test.ts'] }).map((path) => {
    const { body } = parseSync(path, readFileSync(join(source, path), 'utf8')).program
    const imports = body.flatMap((node) =>
      node.type === 'ImportDeclaration' ? node.specifiers.map(({ local }) => local.name) : [],
    )
    const exported = body.flatMap((node) => {
      const declaration = node.type === 'ExportNamedDeclaration' ? node.declaration : null
      const isType = declaration?.type === 'TSInterfaceDeclaration' || declaration?.type === 'TSTypeAliasDeclaration'
      return isType ? [declaration] : []
    })
    return { path, imports, exported }
  })
}
