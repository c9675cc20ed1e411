import { createDb, Scheduler } from '@carillon/core'
import { createDatabase } from '@carillon/core/testing'
import { describe, expect, test } from 'vitest'

import { FeedHub } from '../../src/http/events/feed-hub.ts'
import { Follower } from '../../src/http/events/follower.ts'
import { Permission } from '../../src/http/events/permission.ts'
import { INSTALLATION } from '../../src/http/identity.ts'
import { createLogger } from '../../src/logger.ts'
import { EchoTarget } from './echo-target.ts'
import { DIGEST } from './example-schedules.ts'
import { ManualClock } from './manual-clock.ts'
import { PatientFeed } from './patient-feed.ts'

const GOOD_FOR_MS = 2000
const HEARTBEAT_MS = 15_000
const turn = (): Promise<void> => new Promise(setImmediate)

/** A follower, and what a test says of its key whenever it is looked at. */
function setup() {
  const clock = new ManualClock()
  const answers: PromiseWithResolvers<boolean>[] = []
  const isStillAllowed = (): Promise<boolean> => {
    const answer = Promise.withResolvers<boolean>()
    answers.push(answer)
    return answer.promise
  }
  const faults: unknown[] = []
  const follower = new Follower(new Permission({ clock, isStillAllowed }), (error) => faults.push(error))
  let text = ''
  let isEnded = false
  follower.stream.setEncoding('utf8')
  follower.stream.on('data', (chunk: string) => (text += chunk)).on('end', () => (isEnded = true))
  return {
    clock,
    answers,
    follower,
    faults,
    /** What the client has got so far. */
    told: async () => {
      await turn()
      return text
    },
    isEnded: () => isEnded,
  }
}

describe('what a follower is told', () => {
  test('goes out at once as long as its key was looked at within two seconds', async () => {
    const { clock, answers, follower, told } = setup()

    clock.advance(GOOD_FOR_MS)
    follower.tell('a ')

    expect(await told()).toBe('a ')
    expect(answers).toEqual([])
    follower.stream.destroy()
  })

  test('waits for one look at its key after that, in order, however much it is', async () => {
    const { clock, answers, follower, told } = setup()
    clock.advance(GOOD_FOR_MS + 1)

    for (const text of ['a ', 'b ']) follower.tell(text)
    expect(await told()).toBe('')
    follower.tell('c ')
    answers[0]?.resolve(true)

    expect(await told()).toBe('a b c ')
    follower.tell('d ')
    expect(await told()).toBe('a b c d ')
    expect(answers).toHaveLength(1)
    follower.stream.destroy()
  })

  test('is withheld, and the stream ends, if the key is refused', async () => {
    const { clock, answers, follower, told, isEnded } = setup()
    clock.advance(GOOD_FOR_MS + 1)

    follower.tell('a ')
    answers[0]?.resolve(false)

    expect(await told()).toBe('')
    expect(isEnded()).toBe(true)
  })

  test('waits while nobody can be asked, who is asked again every two seconds; the stream stays', async () => {
    const { clock, answers, follower, told, isEnded } = setup()
    clock.advance(GOOD_FOR_MS + 1)

    follower.tell('a ')
    answers[0]?.reject(new Error('the database is away'))
    await turn()
    clock.advance(GOOD_FOR_MS - 1)
    follower.tell('b ')
    expect([await told(), isEnded(), answers.length]).toEqual(['', false, 1])
    clock.advance(1)
    await turn()
    answers[1]?.resolve(true)

    expect(await told()).toBe('a b ')
    follower.stream.destroy()
  })

  test('is as old as the question about its key, not as the answer', async () => {
    const { clock, answers, follower, told } = setup()
    clock.advance(GOOD_FOR_MS + 1)
    follower.tell('a ')

    clock.advance(GOOD_FOR_MS + 1)
    answers[0]?.resolve(true)
    expect(await told()).toBe('a ')
    follower.tell('b ')

    expect(await told()).toBe('a ')
    expect(answers).toHaveLength(2)
    follower.stream.destroy()
  })

  test('does not pile up: the follower is let go once a mebibyte waits', () => {
    const { clock, follower } = setup()
    clock.advance(GOOD_FOR_MS + 1)

    follower.tell('x'.repeat(1_048_576))
    expect(follower.stream.destroyed).toBe(false)
    follower.tell('x')

    expect(follower.stream.destroyed).toBe(true)
  })

  test('is waited for by whoever reads for it', async () => {
    const { clock, answers, follower } = setup()
    clock.advance(GOOD_FOR_MS + 1)
    follower.tell('a ')
    let isDrained = false

    const drained = follower.whenDrained().then(() => (isDrained = true))
    await turn()
    expect(isDrained).toBe(false)
    answers[0]?.resolve(true)

    expect(await drained).toBe(true)
    follower.stream.destroy()
  })
})

test('a fault of ours while its key is looked at cuts the stream and is told: no promise is left without an owner', async () => {
  const { clock, answers, follower, faults } = setup()
  const fault = new Error('cannot be sent')
  clock.advance(GOOD_FOR_MS + 1)
  follower.stream.push = () => {
    throw fault
  }

  follower.tell('a ')
  answers[0]?.resolve(true)
  await turn()

  expect(faults).toEqual([fault])
  expect(follower.stream.destroyed).toBe(true)
})

test('a heartbeat does not tell a place behind what still waits for a look at the key', async () => {
  await using database = await createDatabase()
  const db = createDb(database.pool)
  const clock = new ManualClock()
  const target = new EchoTarget()
  const scheduler = new Scheduler({ db, targets: new Map([[target.kind, target]]) })
  const answers: PromiseWithResolvers<boolean>[] = []
  const isStillAllowed = (): Promise<boolean> => {
    answers.push(Promise.withResolvers())
    return answers.at(-1)?.promise ?? Promise.resolve(false)
  }
  const logger = createLogger({ logLevel: 'silent' })
  const hub = new FeedHub({ feed: new PatientFeed({ db }), clock, streamsPerKey: 1, logger })
  const stream = await hub.follow({ identity: INSTALLATION, lastEventId: undefined, isStillAllowed })
  let text = ''
  stream.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
  await scheduler.create(INSTALLATION.caller, { ...DIGEST, target: { kind: 'echo' } })

  clock.advance(GOOD_FOR_MS + 1)
  while (answers.length === 0) await turn()
  clock.advance(HEARTBEAT_MS)
  await turn()

  expect(text).toMatch(/\n\n: still here\n\n$/)
  answers[0]?.resolve(true)
  await turn()
  expect(text).toContain('event: schedule')
  hub.close()
})
