import { CompiledQuery } from 'kysely'
import type pg from 'pg'

import { createDb, type Db, type Queryable } from '../src/db/database.ts'

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

/** A database that records the statements it runs. */
export function recordingDb(pool: pg.Pool): { readonly db: Db; readonly queries: CompiledQuery[] } {
  const queries: CompiledQuery[] = []
  return { db: watchedDb(pool, (query) => void queries.push(query)), queries }
}

/** A database that calls `onAnswer` after each statement, before the sender gets the answer. */
export function watchedDb(pool: pg.Pool, onAnswer: (query: CompiledQuery) => void | Promise<void>): Db {
  return createDb(pool, { log: ({ query }) => onAnswer(query) })
}

/** The plans of a statement under the role of this connection: one for these parameters, and the generic one. */
export async function plansOf(db: Queryable, { sql, parameters }: CompiledQuery): Promise<PlanNode[]> {
  const executor = db.getExecutor()
  const explained = [
    await executor.executeQuery<ExplainRow>(CompiledQuery.raw(`explain (format json) ${sql}`, [...parameters])),
    await executor.executeQuery<ExplainRow>(CompiledQuery.raw(`explain (generic_plan, format json) ${sql}`)),
  ]
  return explained.flatMap(({ rows }) => rows.map((row) => row['QUERY PLAN'][0].Plan))
}

/** A plan and everything below it. */
export function nodesOf(plan: PlanNode): PlanNode[] {
  return [plan, ...(plan.Plans ?? []).flatMap(nodesOf)]
}
