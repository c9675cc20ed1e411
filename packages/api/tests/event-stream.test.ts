import { describe, expect, test } from 'vitest'

import { readEventStream } from '../src/event-stream.ts'
import type { LiveEvent } from '../src/index.ts'

function streamOf(chunks: readonly Uint8Array[]): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk)
      controller.close()
    },
  })
}

async function read(...chunks: (string | Uint8Array)[]): Promise<LiveEvent[]> {
  const bytes = chunks.map((chunk) => (typeof chunk === 'string' ? new TextEncoder().encode(chunk) : chunk))
  return Array.fromAsync(readEventStream(streamOf(bytes)))
}

const RESET = 'event: reset\nid: 7\ndata: {"reason":"x"}\n\n'
const AS_READ = { id: '7', event: 'reset', data: { reason: 'x' } }

describe('an event stream', () => {
  test('is read in the same way wherever its chunks end, within a character too', async () => {
    const text = `retry: 2000\nid: 1\n\n: still here\n\n${RESET}id: 8\nevent: reset\ndata: {"reason":"Glockenspiel 🔔 é"}\n\n`
    const bytes = new TextEncoder().encode(text)
    const expected = [AS_READ, { id: '8', event: 'reset', data: { reason: 'Glockenspiel 🔔 é' } }]

    for (let cut = 0; cut <= bytes.length; cut += 1) {
      expect(await read(bytes.slice(0, cut), bytes.slice(cut))).toEqual(expected)
    }
    expect(await read(...Array.from(bytes, (byte) => Uint8Array.of(byte)))).toEqual(expected)
  })

  test.each(['\n', '\r\n', '\r'])('may end its lines with %j, across chunks too', async (ending) => {
    const bytes = new TextEncoder().encode((RESET + RESET).replaceAll('\n', ending))

    for (let cut = 0; cut <= bytes.length; cut += 1) {
      expect(await read(bytes.slice(0, cut), bytes.slice(cut))).toEqual([AS_READ, AS_READ])
    }
  })

  test('uses the last id for events without an id', async () => {
    const events = await read('id: 1\n\n', 'event: reset\ndata: {"reason":"x"}\n\n')

    expect(events).toEqual([{ ...AS_READ, id: '1' }])
  })

  test('reports every position, also without an event, and before the event at that position', async () => {
    const told: string[] = []
    const text = `retry: 2000\nid: 1\n\n: still here\n\n${RESET}: still here\nid: 9\n\n`
    const stream = streamOf([new TextEncoder().encode(text)])

    for await (const { id } of readEventStream(stream, (position) => told.push(position))) told.push(`event ${id}`)

    expect(told).toEqual(['1', '7', 'event 7', '9'])
  })

  test('yields every event before data that is not JSON, also in the same chunk, and then throws', async () => {
    const told: string[] = []
    const reset = (id: number, data: string): string => `event: reset\nid: ${id}\ndata: ${data}\n\n`
    const text = reset(1, '{"reason":"x"}') + reset(2, '{') + reset(3, '{"reason":"x"}')
    const stream = streamOf([new TextEncoder().encode(text)])
    const readAll = async (): Promise<void> => {
      for await (const { id } of readEventStream(stream, (position) => told.push(position))) told.push(`event ${id}`)
    }

    await expect(readAll()).rejects.toThrow(SyntaxError)

    expect(told).toEqual(['1', 'event 1', '2'])
  })

  test('may split data over lines, and omit the space after the colon', async () => {
    expect(await read('id:7\nevent:reset\ndata:{"reason":\ndata: "x"}\n\n')).toEqual([AS_READ])
  })

  test('is read without comments, unknown events and an incomplete last event', async () => {
    const unknown = 'event: toString\ndata: 1\n\nevent: later\ndata: {}\n\nunknown field\n\n'

    expect(await read(': comment\n\n', unknown, RESET, RESET.slice(0, -1))).toEqual([AS_READ])
  })

  test('is cancelled when its reader stops', async () => {
    const { promise: cancelled, resolve } = Promise.withResolvers<void>()
    const stream = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(new TextEncoder().encode(RESET)),
      cancel: () => resolve(),
    })

    for await (const event of readEventStream(stream)) {
      expect(event).toEqual(AS_READ)
      break
    }

    await cancelled
  })
})
