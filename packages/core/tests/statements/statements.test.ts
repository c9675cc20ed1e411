import { join } from 'node:path'

import { afterAll, beforeAll, expect, test, vi } from 'vitest'

import { Sql, type Statement } from '../../src/db/sql.ts'
import { createDatabase, type TestDatabase } from '../database.ts'
import { samples as access } from './access.ts'
import { samples as audit } from './audit.ts'
import { samples as db } from './db.ts'
import { DescribingDb } from './describe.ts'
import { samples as doctor } from './doctor.ts'
import { samples as eventLog } from './event-log.ts'
import { samples as jobs } from './jobs.ts'
import { samples as ledger } from './ledger.ts'
import { samples as maintenance } from './maintenance.ts'
import { samples as pipeline } from './pipeline.ts'
import { samples as schedules } from './schedules.ts'
import { canWrite, findSql, templatesOf } from './templates.ts'

const ROOMS = [access, audit, db, doctor, eventLog, jobs, ledger, maintenance, pipeline, schedules]

const SOURCES = findSql(join(import.meta.dirname, '../../src'))

let database: TestDatabase
let describing: DescribingDb
/** The statements that the samples wrote with the tag `sql`, each with the texts of its templates. */
const written = new Map<Statement, string[]>()

beforeAll(async () => {
  database = await createDatabase()
  describing = await DescribingDb.connect(database.url)
  const compile = vi.spyOn(Sql.prototype, 'compile')
  for (const sample of ROOMS.flat()) await sample(describing.db)
  for (const [index, { value }] of compile.mock.results.entries()) {
    written.set(value as Statement, templatesOf(compile.mock.contexts[index] as Sql))
  }
  compile.mockRestore()
})
afterAll(async () => {
  await describing.end()
  await database[Symbol.asyncDispose]()
})

test('every statement states the columns that Postgres returns, with their names, types, nulls and words', () => {
  expect(describing.mismatches).toEqual([])
})

test('the samples send every template of the tag sql in the sources of core', () => {
  const sent = new Set([...describing.described].flatMap((statement) => written.get(statement) ?? []))
  const sentBefore = writtenBefore().filter(({ columns }) => columns !== undefined)

  const unsent = SOURCES.templates.filter(
    (template) => !sent.has(template.text) && !sentBefore.some(({ text }) => canWrite(template, text)),
  )

  expect(unsent).toEqual([])
})

test('the only store that writes statements without the tag inserts schedules, and the samples send both of them', () => {
  const untagged = writtenBefore().filter(({ columns }) => columns === undefined)

  expect(SOURCES.untagged.filter((file) => file.includes('/store/'))).toEqual(['schedules/store/new-schedules.ts'])
  expect(untagged.map(({ text }) => text.trim())).toEqual([
    expect.stringMatching(/^with\s+schedule as/),
    expect.stringMatching(/^with given as/),
  ])
})

/** Statements whose text was written when their file was imported, and not by the samples. Only the tag states columns. */
function writtenBefore(): Statement[] {
  return [...describing.described].filter((statement) => !written.has(statement))
}
