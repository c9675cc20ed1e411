import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { parseSync, Visitor } from 'oxc-parser'

import { ColumnList, type SqlPart } from '../../src/db/columns.ts'
import { Sql } from '../../src/db/sql.ts'

const VALUE = '${}'

/** A template that the tag `sql` makes a statement, or a part of one. */
interface Template {
  readonly file: string
  /** Its texts, with `${}` for each value between them. */
  readonly text: string
}

/** All places in sources where a statement, or a part of one, is written. */
interface WrittenSql {
  readonly templates: readonly Template[]
  /** The files with an object `{ text, parameters }`, which is a statement that is written without the tag. */
  readonly untagged: readonly string[]
}

/** Finds the SQL in the sources of a folder, tests aside. */
export function findSql(folder: string): WrittenSql {
  const templates: Template[] = []
  const untagged: string[] = []
  for (const file of globSync('**/*.ts', { cwd: folder, exclude: ['**/*.test.ts'] }).toSorted()) {
    new Visitor({
      TaggedTemplateExpression({ tag, quasi }) {
        if (tag.type !== 'Identifier' || tag.name !== 'sql') return
        templates.push({ file, text: textOf(quasi.quasis.map(({ value }) => value.cooked ?? '')) })
      },
      ObjectExpression({ properties }) {
        const names = properties.map((property) =>
          property.type === 'Property' && property.key.type === 'Identifier' ? property.key.name : '',
        )
        if (names.includes('text') && names.includes('parameters')) untagged.push(file)
      },
    }).visit(parseSync(file, readFileSync(join(folder, file), 'utf8')).program)
  }
  return { templates, untagged }
}

/** The texts of all templates that a statement or a part of one is made of. */
export function templatesOf({ strings, values }: SqlPart): string[] {
  const parts = values.flatMap((value): readonly SqlPart[] => {
    if (value instanceof Sql) return [value]
    return value instanceof ColumnList ? value.columns.flatMap(({ column }) => column.expression ?? []) : []
  })
  return [textOf(strings), ...parts.flatMap((part) => templatesOf(part))]
}

/** True if this template alone can have written a statement. */
export function canWrite(template: Template, statement: string): boolean {
  const texts = template.text.split(VALUE).map((text) => RegExp.escape(text))
  return new RegExp(`^${texts.join('[^]*')}$`).test(statement)
}

function textOf(strings: readonly string[]): string {
  return strings.join(VALUE)
}
