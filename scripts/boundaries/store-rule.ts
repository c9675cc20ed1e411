import type { Node } from 'oxc-parser'

import { STORE_READERS } from './arrows.ts'
import { walk } from './syntax-walk.ts'
import type { Violation } from './violation.ts'
import type { SourceFile, Workspace } from './workspace.ts'

const ROOM = /^packages\/core\/src\/([^/]+)\//
const STORE = /^packages\/core\/src\/([^/]+)\/store\//
/** The types of the parts of a statement. */
const SQL_TYPES = ['Sql', 'Column', 'ColumnList']
/** The functions of db/sql.ts and db/columns.ts that make them; `sql` is a tag. */
const SQL_FUNCTIONS = ['sql', 'rawSql', 'identifier', 'literal', 'columns']

/** The SQL of a room is its own: only the room itself imports its `store/`. Other rooms call the room. */
export function checkStores({ files }: Workspace): Violation[] {
  return filesOfCore(files).flatMap((file) => {
    const room = ROOM.exec(file.path)?.[1]
    return file.imports.flatMap(({ target, line }) => {
      const owner = target === undefined ? undefined : STORE.exec(target)?.[1]
      if (owner === undefined || owner === room || STORE_READERS.includes(room ?? '')) return []
      const message = `${room ?? 'the facade'} may not import the store of ${owner} (${target})`
      return [{ rule: 'room-store', file: file.path, line, message }]
    })
  })
}

/**
 * A room may re-export functions of its store that run a statement, and their types. It may not re-export parts of SQL: what the
 * statements of two rooms share is in `db/`.
 */
export function checkStoreExports({ files }: Workspace): Violation[] {
  return filesOfCore(files).flatMap((file) =>
    file.program.body.flatMap((node) => {
      if (node.type !== 'ExportNamedDeclaration' || node.source === null) return []
      const line = file.lineAt(node.source.start)
      const target = file.imports.find((imported) => imported.line === line)?.target ?? ''
      const store = STORE.test(target) ? files.get(target) : undefined
      const fragments = store === undefined ? new Set() : sqlFragmentsIn(store)
      return node.specifiers
        .map(({ local }) => (local.type === 'Identifier' ? local.name : ''))
        .filter((name) => fragments.has(name))
        .map((name) => ({
          rule: 'room-sql',
          file: file.path,
          line,
          message: `${name} is a part of SQL: move it to db/`,
        }))
    }),
  )
}

function filesOfCore(files: Workspace['files']): SourceFile[] {
  return [...files.values()].filter((file) => !file.isTest && file.path.startsWith('packages/core/src/'))
}

/** The names of constants that hold a part of SQL, and of functions that return one. */
function sqlFragmentsIn({ program }: SourceFile): ReadonlySet<string> {
  const types = new Set(SQL_TYPES)
  const names = new Set<string>()
  walk(program, (node) => {
    if (node.type === 'TSTypeAliasDeclaration' && namesAny(node.typeAnnotation, types)) types.add(node.id.name)
  })
  walk(program, (node) => {
    if (node.type === 'VariableDeclarator' && node.id.type === 'Identifier' && isSqlPart(node.init)) {
      names.add(node.id.name)
    }
    if (node.type === 'FunctionDeclaration' && node.id && node.returnType && namesAny(node.returnType, types)) {
      names.add(node.id.name)
    }
  })
  return names
}

/** True for the call of a function that makes a part of a statement, and of a method of such a part: `columns(…).with(…)`. */
function isSqlPart(node: Node | null): boolean {
  if (node?.type === 'TaggedTemplateExpression') return isSqlPart(node.tag)
  if (node?.type === 'CallExpression') return isSqlPart(node.callee)
  if (node?.type === 'MemberExpression') return isSqlPart(node.object)
  return node?.type === 'Identifier' && SQL_FUNCTIONS.includes(node.name)
}

function namesAny(type: Node, names: ReadonlySet<string>): boolean {
  let isFound = false
  walk(type, (node) => {
    isFound ||= node.type === 'Identifier' && names.has(node.name)
  })
  return isFound
}
