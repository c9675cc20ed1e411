import { createDb, Scheduler } from '@carillon/core'
import { createDatabase } from '@carillon/core/testing'
import { describe, expect, test } from 'vitest'

import { INSTALLATION } from '../../src/auth/identity.ts'
import { Follower } from '../../src/events/follower.ts'
import { EventHub } from '../../src/events/hub.ts'
import { StreamPermission } from '../../src/events/permission.ts'
import { toEvent } from '../../src/http/wire.ts'
import { createLogger } from '../../src/start/log.ts'
import { EchoTarget } from '../http/echo-target.ts'
import { DIGEST } from '../http/example-schedules.ts'
import { ManualClock } from '../http/manual-clock.ts'
import { PatientEventLog } from './patient-event-log.ts'

const UNLIMITED = { acquire: () => undefined, release: () => undefined }
const GOOD_FOR_MS = 2000
const HEARTBEAT_MS = 15_000
const turn = (): Promise<void> => new Promise(setImmediate)

/** A follower, with permission checks that the test answers. */
function setup() {
  const clock = new ManualClock()
  const answers: PromiseWithResolvers<boolean>[] = []
  const isStillAllowed = (): Promise<boolean> => {
    const answer = Promise.withResolvers<boolean>()
    answers.push(answer)
    return answer.promise
  }
  const faults: unknown[] = []
  const follower = new Follower(new StreamPermission({ clock, isStillAllowed }), (error) => faults.push(error))
  let text = ''
  let isEnded = false
  follower.stream.setEncoding('utf8')
  follower.stream.on('data', (chunk: string) => (text += chunk)).on('end', () => (isEnded = true))
  return {
    clock,
    answers,
    follower,
    faults,
    /** What the client has received so far. */
    told: async () => {
      await turn()
      return text
    },
    isEnded: () => isEnded,
  }
}

describe('an event for a follower', () => {
  test('is sent at once if permission was checked within two seconds', async () => {
    const { clock, answers, follower, told } = setup()

    clock.advance(GOOD_FOR_MS)
    follower.sendEvent('a ')

    expect(await told()).toBe('a ')
    expect(answers).toEqual([])
    follower.stream.destroy()
  })

  test('waits for one check if that time has passed, however many events wait, and keeps its order', async () => {
    const { clock, answers, follower, told } = setup()
    clock.advance(GOOD_FOR_MS + 1)

    for (const text of ['a ', 'b ']) follower.sendEvent(text)
    expect(await told()).toBe('')
    follower.sendEvent('c ')
    answers[0]?.resolve(true)

    expect(await told()).toBe('a b c ')
    follower.sendEvent('d ')
    expect(await told()).toBe('a b c d ')
    expect(answers).toHaveLength(1)
    follower.stream.destroy()
  })

  test('is dropped, and the stream ends, if the check refuses', async () => {
    const { clock, answers, follower, told, isEnded } = setup()
    clock.advance(GOOD_FOR_MS + 1)

    follower.sendEvent('a ')
    answers[0]?.resolve(false)

    expect(await told()).toBe('')
    expect(isEnded()).toBe(true)
  })

  test('waits while the check fails and is repeated every two seconds, and the stream stays open', async () => {
    const { clock, answers, follower, told, isEnded } = setup()
    clock.advance(GOOD_FOR_MS + 1)

    follower.sendEvent('a ')
    answers[0]?.reject(new Error('the database is away'))
    await turn()
    clock.advance(GOOD_FOR_MS - 1)
    follower.sendEvent('b ')
    expect([await told(), isEnded(), answers.length]).toEqual(['', false, 1])
    clock.advance(1)
    await turn()
    answers[1]?.resolve(true)

    expect(await told()).toBe('a b ')
    follower.stream.destroy()
  })

  test('needs a check that started within two seconds, whenever the check was answered', async () => {
    const { clock, answers, follower, told } = setup()
    clock.advance(GOOD_FOR_MS + 1)
    follower.sendEvent('a ')

    clock.advance(GOOD_FOR_MS + 1)
    answers[0]?.resolve(true)
    expect(await told()).toBe('a ')
    follower.sendEvent('b ')

    expect(await told()).toBe('a ')
    expect(answers).toHaveLength(2)
    follower.stream.destroy()
  })

  test('waits only up to 1 MiB: beyond that the follower is disconnected', () => {
    const { clock, follower } = setup()
    clock.advance(GOOD_FOR_MS + 1)

    follower.sendEvent('x'.repeat(1_048_576))
    expect(follower.stream.destroyed).toBe(false)
    follower.sendEvent('x')

    expect(follower.stream.destroyed).toBe(true)
  })

  test('delays whenDrained until it is sent', async () => {
    const { clock, answers, follower } = setup()
    clock.advance(GOOD_FOR_MS + 1)
    follower.sendEvent('a ')
    let isDrained = false

    const drained = follower.whenDrained().then(() => (isDrained = true))
    await turn()
    expect(isDrained).toBe(false)
    answers[0]?.resolve(true)

    expect(await drained).toBe(true)
    follower.stream.destroy()
  })
})

test('an error during a permission check cuts the stream and is reported, and leaves no unhandled rejection', async () => {
  const { clock, answers, follower, faults } = setup()
  const fault = new Error('cannot be sent')
  clock.advance(GOOD_FOR_MS + 1)
  follower.stream.push = () => {
    throw fault
  }

  follower.sendEvent('a ')
  answers[0]?.resolve(true)
  await turn()

  expect(faults).toEqual([fault])
  expect(follower.stream.destroyed).toBe(true)
})

test('a heartbeat sends no position beyond events that wait for a permission check', async () => {
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
  const hub = new EventHub({ eventLog: new PatientEventLog({ db }), clock, streamLimit: UNLIMITED, toEvent, logger })
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
