import { CompiledQuery, Kysely, PostgresDialect } from 'kysely'
import type pg from 'pg'

import type { Db, Tx } from '../src/store/database.ts'
import type { DB } from '../src/store/schema.generated.ts'

export interface PlanNode {
  readonly 'Node Type': string
  readonly 'Parent Relationship'?: string
  readonly 'Relation Name'?: string
  readonly 'Index Name'?: string
  readonly 'Index Cond'?: string
  readonly Filter?: string
  readonly Plans?: readonly PlanNode[]
}

interface ExplainRow {
  readonly 'QUERY PLAN': readonly [{ readonly Plan: PlanNode }]
}

/** A database that keeps the statements that were run on it. */
export function recordingDb(pool: pg.Pool): { readonly db: Db; readonly queries: CompiledQuery[] } {
  const queries: CompiledQuery[] = []
  return { db: watchedDb(pool, (query) => void queries.push(query)), queries }
}

/** A database that calls back after each statement, before the sender gets the answer. */
export function watchedDb(pool: pg.Pool, onAnswer: (query: CompiledQuery) => void | Promise<void>): Db {
  return new Kysely<DB>({ dialect: new PostgresDialect({ pool }), log: ({ query }) => onAnswer(query) })
}

/** How Postgres goes about a statement for whoever runs this: with its parameters, and with any. */
export async function plansOf(db: Db | Tx, { sql, parameters }: CompiledQuery): Promise<PlanNode[]> {
  const explained = [
    await db.executeQuery<ExplainRow>(CompiledQuery.raw(`explain (format json) ${sql}`, [...parameters])),
    await db.executeQuery<ExplainRow>(CompiledQuery.raw(`explain (generic_plan, format json) ${sql}`)),
  ]
  return explained.flatMap(({ rows }) => rows.map((row) => row['QUERY PLAN'][0].Plan))
}

/** A plan and everything below it. */
export function nodesOf(plan: PlanNode): PlanNode[] {
  return [plan, ...(plan.Plans ?? []).flatMap(nodesOf)]
}
