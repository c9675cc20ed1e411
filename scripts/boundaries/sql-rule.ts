import type { Node } from 'oxc-parser'

import { SQL_FILES, SQL_PACKAGES } from './arrows.ts'
import { walk } from './syntax-walk.ts'
import type { Violation } from './violation.ts'
import { npmNameOf, type SourceFile, type Workspace } from './workspace.ts'

/** How SQL begins. Keywords must be all lower or all upper case, so that a sentence ("Select a day from …") does not match. */
const STATEMENTS = [
  /^select\s[^]*\sfrom\s/,
  /^select\s+[\w.]+\(/,
  /^insert\s+into\s/,
  /^update\s+(only\s+)?\S+(\s+as)?(\s+\w+)?\s+set\s/,
  /^delete\s+from\s/,
  /^merge\s+into\s/,
  /^with\s+(recursive\s+)?\w+\s*(\([^)]*\)\s*)?as\s+(not\s+materialized\s+|materialized\s+)?\(/,
  /^(create|alter|drop)\s+(or\s+replace\s+)?(unique\s+)?(table|index|schema|type|function|role|policy|view|materialized|extension|trigger|sequence)\s/,
  /^truncate\s/,
  /^(listen|notify|unlisten)\s+\S+$/,
  /^set\s+(local|session)\s/,
  /^(begin|commit|rollback)(\s+transaction)?;?$/,
  /^lock\s+table\s/,
]
const SQL_FOLDER = /\/(store|db)\//
const PATTERNS = STATEMENTS.flatMap((statement) => [statement, upperCase(statement)])

/** SQL is written only in a room's `store/`, where each statement is one function with its row type beside it, and in `db/`. */
export function checkSql({ files }: Workspace): Violation[] {
  return files
    .values()
    .filter((file) => !file.isTest && !SQL_FOLDER.test(file.path))
    .flatMap((file) => [...sqlImports(file), ...sqlTexts(file)])
    .toArray()
}

function sqlImports(file: SourceFile): Violation[] {
  return file.imports
    .filter(
      ({ specifier, target = '' }) => SQL_PACKAGES.includes(npmNameOf(specifier) ?? '') || SQL_FILES.includes(target),
    )
    .map(({ specifier, line }) => violation(file, line, `import of ${specifier}`))
}

function sqlTexts(file: SourceFile): Violation[] {
  const violations: Violation[] = []
  walk(file.program, (node, parent) => {
    const isPartOfText = parent?.type === 'BinaryExpression' && parent.operator === '+'
    if (isPartOfText || !isSql(assembledText(node))) return
    violations.push(violation(file, file.lineAt(node.start), 'SQL statement'))
  })
  return violations
}

function violation(file: SourceFile, line: number, what: string): Violation {
  return { rule: 'sql', file: file.path, line, message: `${what} outside a store/ or db/ folder` }
}

function isSql(text: string | undefined): boolean {
  const statement = text?.replace(/^(\s|--.*\n)+/, '')
  return statement !== undefined && PATTERNS.some((pattern) => pattern.test(statement))
}

/** The text of a string, template or concatenation, with `?` for the parts that are known only at run time. */
function assembledText(node: Node): string | undefined {
  if (node.type === 'Literal') return typeof node.value === 'string' ? node.value : undefined
  if (node.type === 'TemplateLiteral') return node.quasis.map(({ value }) => value.cooked ?? value.raw).join('?')
  if (node.type !== 'BinaryExpression' || node.operator !== '+') return undefined
  return (assembledText(node.left) ?? '?') + (assembledText(node.right) ?? '?')
}

/** The same pattern with its keywords in capitals; classes such as `\s` and `\S` stay as they are. */
function upperCase({ source }: RegExp): RegExp {
  return new RegExp(source.replace(/\\.|[a-z]/g, (part) => (part.startsWith('\\') ? part : part.toUpperCase())))
}
