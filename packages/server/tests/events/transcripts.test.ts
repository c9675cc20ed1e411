import { createClient, operations, type Run, type TranscriptEvent } from '@carillon/api'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { DIGEST, UNKNOWN_ID } from '../http/example-schedules.ts'
import { ADMIN_KEY, createTestApp } from '../http/test-app.ts'

const world = await createTestApp()
const { admin, request } = world
let url: string

beforeAll(async () => {
  url = await world.listen()
})
afterAll(() => world[Symbol.asyncDispose]())

async function makeRun(): Promise<Run> {
  const { id } = await admin.schedules.create(DIGEST)
  return admin.schedules.run(id)
}

/** Stores lines of a run as a worker does, under one token. */
async function addLines(run: Run, texts: readonly string[], { token = 1, from = 1 } = {}): Promise<void> {
  await world.database.pool.query(
    `insert into carillon.transcripts (schedule_id, scheduled_for, token, seq, attempt, tenant_id, project_id, at, entry)
     select runs.schedule_id, runs.scheduled_for, $2::integer, $3::integer + ordinal - 1, $2::integer, runs.tenant_id, runs.project_id, now(),
       json_build_object('kind', 'text', 'text', line)
     from carillon.runs
     cross join unnest($4::text[]) with ordinality as line(line, ordinal)
     where runs.id = $1`,
    [run.id, token, from, texts],
  )
}

function textsOf(items: readonly { readonly entry: Readonly<Record<string, unknown>> }[]): unknown[] {
  return items.map(({ entry }) => entry['text'])
}

/** Follows a transcript over a real connection until it is disposed. */
class TranscriptReader implements AsyncDisposable {
  readonly #abort = new AbortController()
  readonly #events: AsyncGenerator<TranscriptEvent, void, undefined>

  constructor(run: Pick<Run, 'id'>, lastEventId?: string, key = ADMIN_KEY) {
    const from = lastEventId === undefined ? {} : { lastEventId }
    this.#events = createClient(url, key, { signal: this.#abort.signal }).runs.followTranscript(run.id, from)
  }

  async next(): Promise<TranscriptEvent> {
    const event = await this.#events.next()
    if (event.done === true) throw new Error('the stream has ended')
    return event.value
  }

  async nextTexts(count: number): Promise<unknown[]> {
    const texts: unknown[] = []
    while (texts.length < count) {
      const { event, data } = await this.next()
      if (event === 'line') texts.push(data.entry['text'])
    }
    return texts
  }

  async isEnded(): Promise<boolean> {
    return (await this.#events.next()).done === true
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#abort.abort()
    await this.#events.return().catch(() => undefined)
  }
}

describe('a page of a transcript', () => {
  test('holds the lines in order, across attempts, and names the line after which the next page begins', async () => {
    const run = await makeRun()
    await addLines(run, ['b'], { token: 2 })
    await addLines(run, ['a1', 'a2'])

    const first = await admin.runs.transcript(run.id, { limit: 2 })
    const second = await admin.runs.transcript(run.id, { limit: 2, after: first.nextCursor ?? '' })

    expect(first.items).toMatchObject([
      { id: '1-1', attempt: 1, entry: { kind: 'text', text: 'a1' } },
      { id: '1-2', attempt: 1, entry: { kind: 'text', text: 'a2' } },
    ])
    expect(first.nextCursor).toBe('1-2')
    expect(second).toMatchObject({ items: [{ id: '2-1', attempt: 2 }], nextCursor: null })
  })

  test('of an open run can be read on later from its last line', async () => {
    const run = await makeRun()
    await addLines(run, ['first'])
    const { items, nextCursor } = await admin.runs.transcript(run.id)
    await addLines(run, ['second'], { from: 2 })

    const later = await admin.runs.transcript(run.id, { after: items.at(-1)?.id ?? '' })

    expect(nextCursor).toBeNull()
    expect(textsOf(later.items)).toEqual(['second'])
  })

  test('holds fewer lines if they are long, but at least one', async () => {
    const run = await makeRun()
    const long = (length: number): string => 'x'.repeat(length)
    await addLines(run, [long(300_000), long(100_000), long(100_000), long(100_000)])

    const lengths: number[][] = []
    for (let after: string | null = '0-0'; after !== null;) {
      const { items, nextCursor }: { items: { entry: Record<string, unknown> }[]; nextCursor: string | null } =
        await admin.runs.transcript(run.id, { after })
      lengths.push(items.map(({ entry }) => (entry['text'] as string).length))
      after = nextCursor
    }

    expect(lengths).toEqual([[300_000], [100_000, 100_000], [100_000]])
  })

  test.each(['', 'x', '1', '1-', '-1-1', '1-1-1', ' 1-1', '2147483648-1', '1-2147483648', '1-1\n'])(
    'is refused after %j, which is not the id of a line',
    async (after) => {
      const run = await makeRun()
      const query = new URLSearchParams({ after })

      const answer = await request('GET', `/api/v1/runs/${run.id}/transcript?${query.toString()}`)

      expect(answer.json()).toMatchObject({ status: 400, code: 'invalid_input', errors: [{ field: 'query.after' }] })
    },
  )

  test('I9: is not found for a run of another project, or of none', async () => {
    const run = await makeRun()
    await addLines(run, ['secret'])
    const { key } = await admin.keys.create({ project: 'web', subject: 'user:a', role: 'admin' })

    for (const path of [
      `${run.id}/transcript`,
      `${run.id}/transcript/live`,
      `${UNKNOWN_ID}/transcript`,
      'x/transcript',
    ]) {
      const answer = await request('GET', `/api/v1/runs/${path}`, { key })
      expect(answer.json()).toMatchObject({ status: 404, code: 'run_not_found' })
    }
  })
})

describe('a stream of a transcript', () => {
  test('sends the lines that are stored, then those that are added, and ends once the run is over', async () => {
    const run = await makeRun()
    await addLines(run, ['stored 1', 'stored 2'])
    await using reader = new TranscriptReader(run)

    const before = await reader.nextTexts(2)
    await addLines(run, ['live'], { from: 3 })
    const after = await reader.nextTexts(1)
    await admin.runs.cancel(run.id)

    expect([before, after]).toEqual([['stored 1', 'stored 2'], ['live']])
    expect(await reader.next()).toEqual({ id: '1-3', event: 'end', data: { state: 'cancelled' } })
    expect(await reader.isEnded()).toBe(true)
  })

  test('continues after the line that a client names, and sends what the document says', async () => {
    const run = await makeRun()
    await addLines(run, ['seen', 'missed'])
    await addLines(run, ['later'], { token: 2 })
    await admin.runs.cancel(run.id)
    await using reader = new TranscriptReader(run, '1-1')

    const events = [await reader.next(), await reader.next(), await reader.next()]

    expect(events.map(({ id, event }) => `${id} ${event}`)).toEqual(['1-2 line', '2-1 line', '2-1 end'])
    for (const { data } of events) expect(operations.followTranscript.success.schema.parse(data)).toEqual(data)
  })

  test('sends a transcript that is longer than a page', async () => {
    const run = await makeRun()
    const texts = Array.from({ length: 500 }, (_, n) => `line ${n}`)
    await addLines(run, texts)
    await admin.runs.cancel(run.id)
    await using reader = new TranscriptReader(run)

    expect(await reader.nextTexts(500)).toEqual(texts)
    expect(await reader.next()).toMatchObject({ event: 'end' })
  })

  test.each([
    ['Last-Event-ID', { headers: { 'last-event-id': 'x' } }, ''],
    ['query.after', {}, '?after=x'],
  ])('is refused before it begins if %s is not the id of a line', async (field, options, query) => {
    const run = await makeRun()

    const answer = await request('GET', `/api/v1/runs/${run.id}/transcript/live${query}`, options)

    expect(answer.json()).toMatchObject({ status: 400, code: 'invalid_input', errors: [{ field }] })
  })

  test('ends when the server closes', async () => {
    await using closing = await createTestApp()
    const { id } = await closing.admin.schedules.create(DIGEST)
    const run = await closing.admin.schedules.run(id)
    const response = await fetch(`${await closing.listen()}/api/v1/runs/${run.id}/transcript/live`, {
      headers: { authorization: `Bearer ${ADMIN_KEY}` },
    })

    await closing.app.close()

    expect(await response.text()).toBe('retry: 2000\n\n')
  })
})

test('streams of transcripts and of events count together towards the 50 streams of a key', async () => {
  const run = await makeRun()
  const { key } = await admin.keys.create({ project: 'default', subject: 'user:a', role: 'member' })
  const open = (path: string): Promise<Response> =>
    fetch(`${url}/api/v1${path}`, { headers: { authorization: `Bearer ${key}` } })
  const live = `/runs/${run.id}/transcript/live`
  const opened = await Promise.all(Array.from({ length: 50 }, (_, n) => open(n % 2 === 0 ? live : '/events')))

  const refused = await open(live)

  expect(opened.map(({ status }) => status)).toEqual(opened.map(() => 200))
  expect(refused.status).toBe(429)
  for (const { body } of opened) await body?.cancel()
})
