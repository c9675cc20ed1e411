import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { compareDumps } from './schema-check.ts'

const SCHEMA = readFileSync(join(import.meta.dirname, 'schema.sql'), 'utf8')

function drift(change: (schema: string) => string): ReturnType<typeof compareDumps> {
  const changed = change(SCHEMA)
  expect(changed).not.toBe(SCHEMA)
  return compareDumps(SCHEMA, changed)
}

test('a schema does not differ from itself with other line endings or another header', () => {
  const none = { missing: [], unexpected: [] }

  expect(drift((schema) => schema.replaceAll('\n', '\r\n'))).toEqual(none)
  expect(drift((schema) => `-- Another header.\n${schema}`)).toEqual(none)
})

test('a missing line is reported with its table, even if other tables have the same line', () => {
  const column = '  tenant_id text collate "C" not null,\n'
  const from = SCHEMA.indexOf(column, SCHEMA.indexOf('create table runs '))

  expect(drift((schema) => schema.slice(0, from) + schema.slice(from + column.length))).toEqual({
    missing: ['create table runs ( … tenant_id text collate "C" not null'],
    unexpected: [],
  })
})

test('a line that is added to a table does not make the previous last line a difference', () => {
  const last = 'constraint workers_pkey PRIMARY KEY (id)'

  expect(drift((schema) => schema.replace(last, `${last},\n  constraint more CHECK (true)`))).toEqual({
    missing: [],
    unexpected: ['create table workers ( … constraint more CHECK (true)'],
  })
})

test('a missing statement is reported by its first line, and a changed type as both missing and unexpected', () => {
  const index = /CREATE INDEX schedules_agenda_idx.*;\n\n/
  expect(drift((schema) => schema.replace(index, ''))).toMatchObject({
    missing: [expect.stringContaining('CREATE INDEX schedules_agenda_idx') as string],
    unexpected: [],
  })

  expect(drift((schema) => schema.replace("('member', 'admin')", "('member', 'admin', 'owner')"))).toEqual({
    missing: ["create type role as enum ('member', 'admin');"],
    unexpected: ["create type role as enum ('member', 'admin', 'owner');"],
  })
})

test('a changed line of a function is reported with the name of the function', () => {
  expect(
    drift((schema) => schema.replace("project_id, 'run', array_agg", "project_id, 'run', array_agg_")),
  ).toMatchObject({
    missing: [expect.stringMatching(/^CREATE OR REPLACE FUNCTION note_runs\(\) … select/) as string],
    unexpected: [expect.stringContaining('array_agg_') as string],
  })
})
