import { createPool } from '@carillon/core'
import { createDatabase } from '@carillon/core/testing'
import { expect, test } from 'vitest'

import { FaultPlan, type Moment } from './fault-plan.ts'
import { SeededRandom } from './seeded-random.ts'
import { startWireProxy, type WireProxy } from './wire-proxy.ts'

const INSERT = 'insert into public.notes (text) values ($1)'
const LABEL = 'insert into public.notes (text) values ($)'

/** A plan that breaks the first connection on which a client sends a certain statement, and records all statements. */
class OneFault extends FaultPlan {
  readonly sent: string[] = []
  readonly happenedAt: string[] = []
  readonly #label: string
  readonly #moment: Moment
  #isOver = false

  constructor(label: string, moment: Moment, random: SeededRandom) {
    super({ moments: [moment], gapMs: 0, openMax: 1, random, now: Date.now })
    this.#label = label
    this.#moment = moment
  }

  override choose(label: string): Moment | undefined {
    this.sent.push(label)
    if (this.#isOver || label !== this.#label) return undefined
    this.#isOver = true
    return this.#moment
  }

  override happened(label: string, moment: Moment): void {
    this.happenedAt.push(`${moment} ${label}`)
  }

  override over(): void {
    // This plan does not count open faults.
  }
}

async function setUp(label: string, moment: Moment) {
  const database = await createDatabase({ content: 'empty' })
  await database.pool.query('create table public.notes (text text not null)')
  const random = new SeededRandom(1)
  const plan = new OneFault(label, moment, random)
  const proxy: WireProxy = await startWireProxy(database.url, { plan, random })
  const url = new URL(proxy.url)
  url.searchParams.set('query_timeout', '300')
  const pool = createPool({ connectionString: url.href, isPrepared: true, maxConnections: 1 })
  return {
    plan,
    pool,
    /** The rows in Postgres, once no session of the client is left. */
    async notes(): Promise<string[]> {
      const others = `select from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and state <> 'idle'`
      // No event reports the end of a session, so this polls with a pause.
      while ((await database.pool.query(others)).rows.length > 0) await database.pool.query('select pg_sleep(0.02)')
      const { rows } = await database.pool.query<{ text: string }>('select text from public.notes order by text')
      return rows.map(({ text }) => text)
    },
    async [Symbol.asyncDispose]() {
      await pool.end()
      await proxy[Symbol.asyncDispose]()
      await database[Symbol.asyncDispose]()
    },
  }
}

test.each<[Moment, string[]]>([
  ['before', ['b']],
  ['after', ['a', 'b']],
  ['silence', ['a', 'b']],
])(
  'a connection fault of the kind %s at a statement leaves the rows %j, and the client gets no answer',
  async (moment, kept) => {
    await using rig = await setUp(LABEL, moment)

    await expect(rig.pool.query(INSERT, ['a'])).rejects.toThrow(/terminated|ECONNRESET|timeout/)
    await rig.pool.query(INSERT, ['b'])

    expect(await rig.notes()).toEqual(kept)
    expect(rig.plan.happenedAt).toEqual([`${moment} ${LABEL}`])
  },
)

test('a statement whose connection breaks while Postgres executes it may still be finished', async () => {
  await using rig = await setUp('select pg_sleep(0.1), $::text as text', 'during')

  await expect(rig.pool.query('select pg_sleep(0.1), $1::text as text', ['a'])).rejects.toThrow(/terminated|ECONNRESET/)

  expect(rig.plan.happenedAt).toEqual(['during select pg_sleep(0.1), $::text as text'])
})

test('if the answer to a commit is lost, the commit has still happened', async () => {
  await using rig = await setUp(`commit after ${LABEL}`, 'after')
  const client = await rig.pool.connect()
  // The statements are sent at once, as the pipeline sends them.
  const sent = [client.query('begin'), client.query(INSERT, ['a']), client.query('commit')]

  const [begun, inserted, committed] = await Promise.allSettled(sent)
  client.release(true)

  expect([begun?.status, inserted?.status, committed?.status]).toEqual(['fulfilled', 'fulfilled', 'rejected'])
  expect(await rig.notes()).toEqual(['a'])
})

test('a commit that Postgres does not receive has no effect', async () => {
  await using rig = await setUp(`commit after ${LABEL}`, 'before')
  const client = await rig.pool.connect()
  await client.query('begin')
  await client.query(INSERT, ['a'])

  await expect(client.query('commit')).rejects.toThrow(/terminated|ECONNRESET/)
  client.release(true)

  expect(await rig.notes()).toEqual([])
})

test('a prepared statement is recognised by its text, even when only its name is sent', async () => {
  await using rig = await setUp('nothing', 'before')
  for (const text of ['a', 'b']) await rig.pool.query(INSERT, [text])

  expect(rig.plan.sent).toEqual(['connect', LABEL, LABEL])
})
