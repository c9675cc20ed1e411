import { afterAll, beforeAll, expect, test } from 'vitest'

import { createDb, type Db } from '../../src/db/database.ts'
import type { Statement } from '../../src/db/sql.ts'
import { transactScoped } from '../../src/db/transact.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { Scheduler } from '../../src/scheduler.ts'
import { listSchedules } from '../../src/schedules/store/schedules.ts'
import { createDatabase, type TestDatabase } from '../database.ts'
import { ANY_NUMBER, CALLER, EVERY_MINUTE } from '../pipeline.ts'
import { nodesOf, recordingDb, type ExplainRow, type PlanNode } from '../query-plan.ts'
import { ScriptedTarget } from '../scripted-target.ts'

/** The number of schedules in each of five projects. */
const COUNT = 500
const PROJECTS = [CALLER.projectId, 'one', 'two', 'three', 'four']
const PAGE = 10
const EVERYTHING = { state: null, targetKind: null, nameContains: null, before: null, limit: PAGE }
/** Blocks of 8 kB. A page of ten reads about 100, the names of a project 10 more. Three rows per name would read 3,000. */
const BLOCKS_MAX = 200

interface ReadPlan extends PlanNode {
  readonly 'Shared Hit Blocks': number
  readonly 'Shared Read Blocks': number
}

let database: TestDatabase
let scheduler: Scheduler
let recording: { readonly db: Db; readonly queries: Statement[] }

beforeAll(async () => {
  database = await createDatabase()
  const target = new ScriptedTarget()
  scheduler = new Scheduler({ db: createDb(database.pool), targets: new Map([[target.kind, target]]) }, ANY_NUMBER)
  const inputs = Array.from({ length: COUNT }, (_, n) => ({ ...EVERY_MINUTE, name: `Report ${n}` }))
  for (const projectId of PROJECTS) await scheduler.createMany({ ...CALLER, projectId }, inputs)
  await database.pool.query(
    'vacuum (analyze) carillon.schedules, carillon.schedule_revisions, carillon.execution_grants',
  )
  recording = recordingDb(database.pool)
})
afterAll(() => database[Symbol.asyncDispose]())

/** Reads a page under row-level security, as the API does. Returns its length, the blocks read and the indexes used. */
async function readPage(
  query: Partial<Parameters<typeof listSchedules>[1]>,
): Promise<{ length: number; blocks: number; indexes: Set<string | undefined> }> {
  const { db, queries } = recording
  return transactScoped(db, systemClock, CALLER, async (tx) => {
    queries.length = 0
    const { length } = await listSchedules(tx, { ...CALLER, ...EVERYTHING, ...query })
    const [listQuery] = queries
    if (listQuery === undefined) throw new Error('expected a query, got none')
    const { text, parameters } = listQuery
    const rows = await tx.run({ text: `explain (analyze, buffers, format json) ${text}`, parameters })
    const [explained] = rows as ExplainRow<ReadPlan>[]
    if (explained === undefined) throw new Error('expected a query plan, got none')
    const [{ Plan: plan }] = explained['QUERY PLAN']
    const walks = nodesOf(plan).filter((node) => node['Node Type'] === 'Index Only Scan')
    return {
      length,
      blocks: plan['Shared Hit Blocks'] + plan['Shared Read Blocks'],
      indexes: new Set(walks.map((node) => node['Index Name'])),
    }
  })
}

// The project is the oldest, so a query that starts at the newest schedule of all tenants reads four other projects first.
test('a page reads few blocks of a project whose schedules are all active', async () => {
  const [, , third] = await scheduler.list(CALLER, { limit: 3 })

  for (const before of [null, third?.id ?? null]) {
    const { length, blocks, indexes } = await readPage({ before })
    expect(length).toBe(PAGE)
    expect(blocks).toBeLessThan(BLOCKS_MAX)
    expect(indexes).toContain('schedule_revisions_name_idx')
  }
})

test.each([
  ['all match', 'report', PAGE],
  ['one in a hundred matches', '77', 5],
  ['one matches', 'T 123', 1],
  ['none matches', 'digest', 0],
])(
  'a search reads the names of its project in the order of the list, and only the rows that it returns: %s',
  async (...row) => {
    const [, nameContains, count] = row
    const { length, blocks, indexes } = await readPage({ nameContains })

    expect(length).toBe(count)
    expect(blocks).toBeLessThan(BLOCKS_MAX)
    expect(indexes).toContain('schedule_revisions_name_idx')
  },
)

test.each([
  ['a state of no schedule', { state: 'paused' }, 0],
  ['the state of all schedules', { state: 'active' }, PAGE],
  ['a kind of no schedule', { targetKind: 'http' }, 0],
  ['the kind of all schedules', { targetKind: 'test' }, PAGE],
  ['a state of no schedule, and a name', { state: 'paused', nameContains: 'report' }, 0],
  ['the kind of all schedules, and a name', { targetKind: 'test', nameContains: '77' }, 5],
] as const)('a filtered page reads each schedule of its project at most once: %s', async (_name, query, count) => {
  const { length, blocks } = await readPage(query)

  expect(length).toBe(count)
  expect(blocks).toBeLessThan('nameContains' in query && count > 0 ? COUNT * 4 : BLOCKS_MAX)
})

test('pages of a search continue without gaps, newest first', async () => {
  const names: string[] = []
  for (let before: string | undefined; ;) {
    const page = await scheduler.list(CALLER, { nameContains: '9', limit: 7, ...(before && { before }) })
    names.push(...page.map(({ name }) => name))
    before = page.at(-1)?.id
    if (page.length < 7) break
  }

  const numbers = Array.from({ length: COUNT }, (_, n) => COUNT - 1 - n).filter((n) => String(n).includes('9'))
  expect(names).toEqual(numbers.map((n) => `Report ${n}`))
})

test('a schedule is found only by its current name, and not after it is deleted', async () => {
  const found = async (nameContains: string): Promise<string[]> =>
    (await scheduler.list(CALLER, { nameContains })).map(({ name }) => name)
  const { id, revision } = await scheduler.create(CALLER, { ...EVERY_MINUTE, name: 'Invoice' })
  await scheduler.edit(CALLER, id, { name: 'Reminder' }, { revision })
  expect(await found('invoice')).toEqual([])
  expect(await found('reminder')).toEqual(['Reminder'])

  await scheduler.delete(CALLER, id)

  expect(await found('reminder')).toEqual([])
})
