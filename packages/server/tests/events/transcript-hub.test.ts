import { CarillonError, type Caller } from '@carillon/core'
import { expect, test } from 'vitest'

import { INSTALLATION } from '../../src/auth/identity.ts'
import { TranscriptHub } from '../../src/events/transcript-hub.ts'
import type { TranscriptMessages } from '../../src/events/transcript-messages.ts'
import { createLogger } from '../../src/start/log.ts'
import { ManualClock } from '../http/manual-clock.ts'

const POLL_MS = 500
const HEARTBEAT_MS = 15_000
const RUN = '01995c0e-0000-7000-8000-000000000001'
const turn = (): Promise<void> => new Promise(setImmediate)

/** A hub over a transcript that the test writes. */
function setup() {
  const clock = new ManualClock()
  const transcript: string[] = []
  const reads: (string | undefined)[] = []
  const log: Record<string, unknown>[] = []
  const state = { isOver: false, error: undefined as Error | undefined, isAllowed: true, open: 0 }
  /** What the next read waits for before it answers with what it has read. */
  let gate: Promise<void> | undefined
  const read = async (_caller: Caller, _runId: string, after: string | undefined): Promise<TranscriptMessages> => {
    reads.push(after)
    const waits = gate ?? turn()
    gate = undefined
    const first = after === undefined ? 0 : Number(after.slice(2))
    const lines = transcript.slice(first).map((text, index) => ({ id: `1-${first + index + 1}`, text: `${text} ` }))
    const page = { lines, isMore: false, end: state.isOver ? 'the end' : undefined }
    const { error } = state
    await waits
    if (error !== undefined) throw error
    return page
  }
  /** Delays the answer to the next read. Returns a function that lets it come. */
  const holdRead = (): (() => void) => {
    const held = Promise.withResolvers<void>()
    gate = held.promise
    return held.resolve
  }
  const hub = new TranscriptHub({
    read,
    clock,
    streamLimit: { acquire: () => void (state.open += 1), release: () => void (state.open -= 1) },
    logger: createLogger({ logLevel: 'warn' }, { write: (line) => void log.push(JSON.parse(line) as (typeof log)[0]) }),
  })
  const follow = async (lastEventId?: string) => {
    const stream = await hub.follow({
      identity: INSTALLATION,
      runId: RUN,
      lastEventId,
      isStillAllowed: async () => state.isAllowed,
    })
    let text = ''
    let isEnded = false
    stream.setEncoding('utf8')
    stream.on('data', (chunk: string) => (text += chunk)).on('end', () => (isEnded = true))
    return { stream, text: () => text.replace('retry: 2000\n\n', ''), isEnded: () => isEnded }
  }
  /** Lets everything happen that needs no time. */
  const settle = async (): Promise<void> => {
    for (let turns = 0; turns < 20; turns += 1) await turn()
  }
  const poll = async (): Promise<void> => {
    clock.advance(POLL_MS)
    await settle()
  }
  return { clock, transcript, reads, log, state, holdRead, follow, settle, poll }
}

test('one poll serves all followers of a run, whichever line they began with, and there is no poll without followers', async () => {
  const { transcript, reads, follow, settle, poll } = setup()
  transcript.push('a', 'b')
  const followers = [await follow(), await follow('1-1'), await follow('1-2')]
  await settle()
  reads.length = 0

  transcript.push('c')
  await poll()
  expect(reads).toEqual(['1-2'])
  expect(followers.map(({ text }) => text())).toEqual(['a b c ', 'b c ', 'c '])
  for (const { stream } of followers) stream.destroy()
  await settle()
  await poll()

  expect(reads).toEqual(['1-2'])
})

test('a follower that joins behind or ahead of the poll gets every line once', async () => {
  const { transcript, follow, settle, poll } = setup()
  transcript.push('a')
  const early = await follow()
  await settle()

  transcript.push('b')
  // Reads "b" itself, before the poll has seen it.
  const ahead = await follow()
  await settle()
  transcript.push('c')
  await poll()
  transcript.push('d')
  await poll()

  expect(early.text()).toBe('a b c d ')
  expect(ahead.text()).toBe('a b c d ')
})

test('a follower that has read less than the poll reads on by itself before it is added', async () => {
  const { transcript, holdRead, follow, settle, poll } = setup()
  const early = await follow()
  await settle()
  const release = holdRead()
  const opening = follow()
  transcript.push('a')
  await poll()
  release()
  const late = await opening
  await settle()
  transcript.push('b')
  await poll()

  expect([early.text(), late.text()]).toEqual(['a b ', 'a b '])
})

test('a follower that read before the run was over gets the end, even if the poll has ended meanwhile', async () => {
  const { state, holdRead, follow, settle, poll } = setup()
  await follow()
  await settle()
  const release = holdRead()
  const opening = follow()
  state.isOver = true
  await poll()
  release()
  const late = await opening
  await settle()

  expect(late.text()).toBe('the end')
  expect(late.isEnded()).toBe(true)
})

test('the end comes after a permission check if the last one is older than two seconds', async () => {
  const { clock, state, follow, settle } = setup()
  const follower = await follow()
  await settle()
  for (let polls = 0; polls < 5; polls += 1) {
    clock.advance(POLL_MS)
    await settle()
  }
  state.isOver = true
  clock.advance(POLL_MS)
  await settle()

  expect(follower.text()).toBe('the end')
  expect(follower.isEnded()).toBe(true)
})

test('all followers get the end after the last lines, and their streams end', async () => {
  const { transcript, state, follow, settle, poll } = setup()
  const followers = [await follow(), await follow()]
  await settle()
  transcript.push('last')
  state.isOver = true
  await poll()
  const late = await follow()
  await settle()

  expect([...followers, late].map(({ text }) => text())).toEqual(Array(3).fill('last the end'))
  expect([...followers, late].map(({ isEnded }) => isEnded())).toEqual([true, true, true])
  expect(state.open).toBe(0)
})

test('while the transcript cannot be read the followers stay connected, and the failure is logged once', async () => {
  const { clock, transcript, state, log, follow, settle, poll } = setup()
  const follower = await follow()
  await settle()
  state.error = new Error('the database is away')
  await poll()
  for (const pauseMs of [500, 1000, 2000]) {
    clock.advance(pauseMs)
    await settle()
  }
  state.error = undefined
  transcript.push('back')
  clock.advance(4000)
  await settle()

  expect(follower.text()).toBe('back ')
  expect(log).toMatchObject([{ event: 'transcript.poll_failed' }])
})

test('a stream ends if its run is gone', async () => {
  const { state, follow, settle, poll } = setup()
  const follower = await follow()
  await settle()
  state.error = new CarillonError('run_not_found', 'expected the id of a run of this project')
  await poll()

  expect(follower.isEnded()).toBe(true)
})

test('a follower gets no line two seconds after it may no longer follow, and its stream ends', async () => {
  const { clock, transcript, state, follow, settle } = setup()
  const follower = await follow()
  await settle()
  state.isAllowed = false
  transcript.push('secret')
  clock.advance(2001)
  await settle()

  expect(follower.text()).toBe('')
  expect(follower.isEnded()).toBe(true)
})

test('a stream of a run that records nothing ends with the next heartbeat once its client may no longer follow', async () => {
  const { clock, state, follow, settle } = setup()
  const follower = await follow()
  await settle()
  state.isAllowed = false
  clock.advance(HEARTBEAT_MS)
  await settle()

  expect(follower.text()).toBe(': still here\n\n')
  expect(follower.isEnded()).toBe(true)
})

test('a stream that is refused counts no longer towards the limit of its key', async () => {
  const { state, follow } = setup()
  state.error = new CarillonError('run_not_found', 'expected the id of a run of this project')

  await expect(follow()).rejects.toMatchObject({ code: 'run_not_found' })
  await turn()

  expect(state.open).toBe(0)
})
