import { afterAll, beforeAll, expect, test } from 'vitest'

import { SCHEDULE } from '../contract/wire-request.ts'
import { openWorld, type World } from '../contract/world.ts'
import { CANARY, openAsker, openTheirs, type Asker } from './two-tenants.ts'

/** This word is in everything that the first tenant creates. */
const OWN = 'heron52c1'

let world: World
let amber: Asker
let basil: Asker

beforeAll(async () => {
  world = await openWorld()
  amber = await openAsker(world, 'amber')
  basil = await openTheirs(world)
})
afterAll(() => world.close())

/** A stream as it arrives over the wire. It throws once it contains a forbidden text. */
class WireStream implements AsyncDisposable {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>
  readonly #forbidden: string
  readonly #decoder = new TextDecoder()
  #text = ''

  private constructor(body: ReadableStream<Uint8Array>, forbidden: string) {
    this.#reader = body.getReader()
    this.#forbidden = forbidden
  }

  static async open(
    { key }: Asker,
    { forbidden, headers = {}, query = '' }: { forbidden: string; headers?: Record<string, string>; query?: string },
  ): Promise<WireStream> {
    const response = await fetch(`${world.url}/api/v1/events${query}`, {
      headers: { authorization: `Bearer ${key}`, ...headers },
    })
    if (response.status !== 200 || response.body === null) throw new Error(`refused with ${response.status}`)
    const stream = new WireStream(response.body, forbidden)
    await stream.readUntil('\n\n')
    return stream
  }

  /** Resolves with the whole text so far, once it contains the wanted text. */
  async readUntil(wanted: string): Promise<string> {
    while (!this.#text.includes(wanted)) {
      const { done, value } = await this.#reader.read()
      if (done) throw new Error(`the stream ended before ${wanted} came`)
      this.#text += this.#decoder.decode(value, { stream: true })
      if (this.#text.includes(this.#forbidden)) throw new Error(`another tenant’s in a stream: ${this.#text}`)
    }
    return this.#text
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#reader.cancel()
  }
}

async function createAs({ client }: Asker, name: string): Promise<string> {
  return (await client.schedules.create({ ...SCHEDULE, name })).id
}

/** Creates a schedule, pauses it and runs it, and waits until its tenant has received the events. */
async function stir(asker: Asker, word: string, stream: WireStream): Promise<string> {
  const id = await createAs(asker, `${word} first`)
  await asker.client.schedules.pause(id, { reason: `${word} reason` })
  const run = await asker.client.schedules.run(id)
  const text = await stream.readUntil(`"id":"${run.id}"`)
  expect(text).toContain(`${word} reason`)
  return text
}

const ORDERS = [
  { first: 'the first tenant', order: ['amber', 'basil'] },
  { first: 'the second tenant', order: ['basil', 'amber'] },
] as const

test.each(ORDERS)(
  'two tenants with a project of the same name get only their own events, if $first connected first',
  async ({ order }) => {
    const open = {
      amber: () => WireStream.open(amber, { forbidden: CANARY }),
      basil: () => WireStream.open(basil, { forbidden: OWN }),
    }
    const [first, second] = order
    const streams = { [first]: await open[first](), [second]: await open[second]() } as Record<
      'amber' | 'basil',
      WireStream
    >
    await using ofAmber = streams.amber
    await using ofBasil = streams.basil

    await stir(basil, CANARY, ofBasil)
    await stir(amber, OWN, ofAmber)
    // Any event that reached the wrong stream would arrive before the events of these schedules.
    const lastOfAmber = await createAs(amber, `${OWN} last`)
    const lastOfBasil = await createAs(basil, `${CANARY} last`)

    await ofAmber.readUntil(lastOfAmber)
    await ofBasil.readUntil(lastOfBasil)
  },
)

test.each([
  ['Last-Event-ID', (id: string) => ({ headers: { 'last-event-id': id } })],
  ['after', (id: string) => ({ query: `?after=${encodeURIComponent(id)}` })],
] as const)(
  "%s with a position of another tenant's stream leads only to the caller's own events",
  async (_name, from) => {
    await using ofBasil = await WireStream.open(basil, { forbidden: OWN })
    const missed = await createAs(amber, `${OWN} while away`)
    const text = await stir(basil, CANARY, ofBasil)
    const ids = [...text.matchAll(/^id: (\S+)$/gm)].map(([, id = '']) => id)
    const [opening = '', ...others] = ids
    expect(others).not.toEqual([])
    const last = await createAs(amber, `${OWN} last`)

    await using ofAmber = await WireStream.open(amber, { forbidden: CANARY, ...from(opening) })
    expect(await ofAmber.readUntil(last)).toContain(missed)
    for (const id of others) {
      await using later = await WireStream.open(amber, { forbidden: CANARY, ...from(id) })
      await later.readUntil(last)
    }
  },
)
