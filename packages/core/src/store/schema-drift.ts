import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import type pg from 'pg'

import { dumpSchema } from './schema-dump.ts'

/** In what a database differs from what its migrations made: somebody changed it by hand. */
export interface SchemaDrift {
  readonly missing: readonly string[]
  readonly unexpected: readonly string[]
}

const EXPECTED = join(import.meta.dirname, 'schema.sql')

/** Compares a database that has taken all migrations with the dump that is committed beside them. */
export async function findDrift(pool: pg.Pool): Promise<SchemaDrift> {
  return compareDumps(readFileSync(EXPECTED, 'utf8'), await dumpSchema(pool))
}

/** Line by line within each statement, wherever they stand: a line names its table, for many tables have the same ones. */
export function compareDumps(expected: string, found: string): SchemaDrift {
  const [wanted, present] = [linesOf(expected), linesOf(found)]
  return { missing: without(wanted, present), unexpected: without(present, wanted) }
}

/** A statement that is not there at all is told by its first line. */
function without(lines: Statements, others: Statements): string[] {
  return [...lines].flatMap(([head, body]) => {
    const otherBody = others.get(head)
    if (otherBody === undefined) return [head]
    return [...body].filter((line) => !otherBody.has(line)).map((line) => `${head} … ${line}`)
  })
}

type Statements = ReadonlyMap<string, ReadonlySet<string>>

function linesOf(dump: string): Statements {
  const statements = new Map<string, Set<string>>()
  let body = new Set<string>()
  for (const line of dump.replaceAll('\r\n', '\n').split('\n')) {
    // Whether a comma follows depends on what stands behind it.
    const text = line.trim().replace(/,$/, '')
    if (/^create /i.test(line)) {
      body = new Set()
      statements.set(text, body)
    } else if (text !== '') {
      body.add(text)
    }
  }
  return statements
}
