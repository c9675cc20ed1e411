import type pg from 'pg'

import { createDb, type Db, type Queryable } from '../src/db/database.ts'
import type { Statement } from '../src/db/sql.ts'

export interface PlanNode {
  readonly 'Node Type': string
  readonly 'Parent Relationship'?: string
  readonly 'Relation Name'?: string
  readonly 'Index Name'?: string
  readonly 'Index Cond'?: string
  readonly Filter?: string
  readonly Plans?: readonly PlanNode[]
}

export interface ExplainRow<Node = PlanNode> {
  readonly 'QUERY PLAN': readonly [{ readonly Plan: Node }]
}

/** A database that records the statements it runs. */
export function recordingDb(pool: pg.Pool): { readonly db: Db; readonly queries: Statement[] } {
  const queries: Statement[] = []
  return { db: watchedDb(pool, (query) => void queries.push(query)), queries }
}

/** A database that calls `onAnswer` after each statement, before the sender gets the answer. Settings do not count. */
export function watchedDb(pool: pg.Pool, onAnswer: (query: Statement) => void | Promise<void>): Db {
  return createDb(pool, { onAnswer: (query, { command }) => (command === 'SET' ? undefined : onAnswer(query)) })
}

/** The plans of a statement under the role of this connection: one for these parameters, and the generic one. */
export async function plansOf(db: Queryable, { text, parameters }: Statement): Promise<PlanNode[]> {
  const explained = [
    ...(await db.run({ text: `explain (format json) ${text}`, parameters })),
    ...(await db.run({ text: `explain (generic_plan, format json) ${text}`, parameters: [] })),
  ] as ExplainRow[]
  return explained.map((row) => row['QUERY PLAN'][0].Plan)
}

/** A plan and everything below it. */
export function nodesOf(plan: PlanNode): PlanNode[] {
  return [plan, ...(plan.Plans ?? []).flatMap(nodesOf)]
}
