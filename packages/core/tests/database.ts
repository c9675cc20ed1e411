import { randomUUID } from 'node:crypto'

import pg from 'pg'
import { inject } from 'vitest'

import { createDb } from '../src/db/database.ts'
import { migrate } from '../src/db/migrate.ts'
import { ensurePartitions } from '../src/db/months.ts'
import { createPool } from '../src/db/pool.ts'
import { refuseUndeclaredNulls } from './statements/declared-nulls.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** The superuser's URL of the Postgres that all tests of this run share. tests/database/global-setup.ts starts it. */
    readonly postgresUrl: string
  }
}

/** A database that only its creator uses. */
export interface TestDatabase extends AsyncDisposable {
  readonly name: string
  readonly url: string
  /** Closed with the database. */
  readonly pool: pg.Pool
}

interface CreateOptions {
  /** `migrated`: all migrations, and partitions for 2026, January 2027 and today. @default 'migrated' */
  readonly content?: 'migrated' | 'empty'
}

const TEMPLATE = 'carillon_template'
const TEMPLATE_LOCK = 7400

/** Creates a database by cloning one that is migrated once per test run. Most test files need only one. */
export async function createDatabase({ content = 'migrated' }: CreateOptions = {}): Promise<TestDatabase> {
  const name = `test_${randomUUID().replaceAll('-', '')}`
  await asSuperuser(async (client) => {
    if (content === 'migrated') await ensureTemplate(client)
    const template = content === 'migrated' ? TEMPLATE : 'template0'
    // Copying files takes two thirds of the time that writing them through the WAL takes.
    await client.query(`create database ${name} template ${template} strategy file_copy`)
  })
  const url = urlOf(name)
  const pool = createPool({ connectionString: url })
  return {
    name,
    url,
    pool,
    async [Symbol.asyncDispose]() {
      if (!pool.ended) await pool.end()
      await asSuperuser((client) => client.query(`drop database if exists ${name} with (force)`))
    },
  }
}

/** The first test file creates the template, and the others wait for it. */
async function ensureTemplate(client: pg.Client): Promise<void> {
  if (await hasTemplate(client)) return
  // A session-level lock, because `create database` cannot run in a transaction. It is released with the connection.
  await client.query('select pg_advisory_lock($1)', [TEMPLATE_LOCK])
  if (await hasTemplate(client)) return
  // It has another name until it is complete. A database of that name exists only if an earlier attempt failed.
  const unfinished = `${TEMPLATE}_unfinished`
  await client.query(`drop database if exists ${unfinished} with (force)`)
  await client.query(`create database ${unfinished} template template0`)
  const pool = createPool({ connectionString: urlOf(unfinished) })
  await migrate(pool)
  const db = createDb(pool, { onAnswer: refuseUndeclaredNulls })
  const today = new Date()
  await ensurePartitions(db, { from: new Date('2026-01-01T00:00:00Z'), to: new Date('2027-01-31T00:00:00Z') })
  await ensurePartitions(db, { from: today, to: today })
  await db.close()
  await client.query(`alter database ${unfinished} rename to ${TEMPLATE}`)
}

async function hasTemplate(client: pg.Client): Promise<boolean> {
  const { rowCount } = await client.query('select from pg_database where datname = $1', [TEMPLATE])
  return rowCount === 1
}

async function asSuperuser<Result>(work: (client: pg.Client) => Promise<Result>): Promise<Result> {
  const client = new pg.Client({ connectionString: inject('postgresUrl') })
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

function urlOf(database: string): string {
  const url = new URL(inject('postgresUrl'))
  url.pathname = `/${database}`
  return url.href
}
