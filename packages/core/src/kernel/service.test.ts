import { setImmediate } from 'node:timers/promises'

import { describe, expect, test } from 'vitest'

import { ManualClock } from '../../tests/manual-clock.ts'
import { Events, type EventMap } from './events.ts'
import type { FailurePause } from './failure-record.ts'
import { PeriodicService, Service } from './service.ts'

const PAUSE_MS = 250
const REST_MS = 1000

/** A clock that records how long its users slept. */
class WatchedClock extends ManualClock {
  readonly sleeps: number[] = []

  override sleep(ms: number, signal?: AbortSignal): Promise<void> {
    this.sleeps.push(ms)
    return super.sleep(ms, signal)
  }
}

class Scripted extends Service<number> {
  override readonly name = 'scripted'
  readonly #clock: ManualClock
  /** The outcomes of the next calls of runOnce: an error, or undefined for a success. Later calls succeed. */
  readonly outcomes: (Error | undefined)[]
  times = 0

  constructor(clock: ManualClock, events: Events, outcomes: readonly (Error | undefined)[], pause: FailurePause) {
    super({ clock, events }, pause)
    this.#clock = clock
    this.outcomes = [...outcomes]
  }

  override async runOnce(): Promise<number> {
    this.times += 1
    await Promise.resolve()
    const error = this.outcomes.shift()
    if (error !== undefined) throw error
    return this.times
  }

  protected override rest(_count: number, signal: AbortSignal): Promise<void> {
    return this.#clock.sleep(REST_MS, signal)
  }
}

function setup(outcomes: readonly (Error | undefined)[], pause: FailurePause = { firstMs: PAUSE_MS }) {
  const [clock, events] = [new WatchedClock('2026-03-02T09:00:00Z'), new Events()]
  const emitted: EventMap['service.failed'][] = []
  events.on('service.failed', (failure) => emitted.push(failure))
  const service = new Scripted(clock, events, outcomes, pause)
  /** Lets the service run once and waits until it sleeps again. */
  const next = async (): Promise<void> => {
    const { times } = service
    if (times === 0) service.start()
    else clock.advance(clock.sleeps.at(-1) ?? 0)
    while (service.times === times || clock.waiting === 0) await setImmediate()
  }
  return { clock, events, emitted, service, next }
}

function failures(count: number): Error[] {
  return Array.from({ length: count }, (_, n) => new Error(`no ${n + 1}`))
}

describe('a service that fails (I13)', () => {
  test('pauses for twice as long after each further failure, up to five seconds', async () => {
    const { clock, service, next } = setup(failures(8))

    for (let times = 0; times < 8; times += 1) await next()
    await service.stop()

    expect(clock.sleeps).toEqual([250, 500, 1000, 2000, 4000, 5000, 5000, 5000])
  })

  test('reports the number of consecutive failures, their duration and the last error until it succeeds', async () => {
    const { clock, service, next } = setup([undefined, ...failures(3)])
    expect(service.failure).toBeUndefined()

    await next()
    expect(service.failure).toBeUndefined()
    for (let times = 0; times < 3; times += 1) await next()
    expect(service.failure).toEqual({ failures: 3, forMs: 250 + 500, error: 'no 3' })
    clock.advance(999)
    expect(service.failure).toMatchObject({ forMs: 250 + 500 + 999 })
    clock.advance(1)
    while (service.times < 5) await setImmediate()
    while (clock.waiting === 0) await setImmediate()

    expect(service.failure).toBeUndefined()
    await service.stop()
  })

  test('emits an event with its name for each failure', async () => {
    const errors = failures(2)
    const { service, next, emitted } = setup(errors)

    await next()
    await next()
    await next()
    await service.stop()

    expect(emitted).toEqual(errors.map((error) => ({ service: 'scripted', error })))
  })

  test('pauses for a short time again after a success', async () => {
    const { clock, service, next } = setup([...failures(3), undefined, ...failures(2)])

    for (let times = 0; times < 6; times += 1) await next()
    await service.stop()

    expect(clock.sleeps).toEqual([250, 500, 1000, REST_MS, 250, 500])
  })

  test.each([
    ['grows to a limit of its own', { firstMs: 20_000, maxMs: 60_000 }, [20_000, 40_000, 60_000, 60_000]],
    ['stays the same if the limit is its first pause', { firstMs: 400, maxMs: 400 }, [400, 400, 400, 400]],
  ])('whose pause %s', async (_how, pause, sleeps) => {
    const { clock, service, next } = setup(failures(4), pause)

    for (let times = 0; times < 4; times += 1) await next()
    await service.stop()

    expect(clock.sleeps).toEqual(sleeps)
  })

  test('stops during a pause without waiting for its end', async () => {
    const { clock, service, next } = setup(failures(6))
    for (let times = 0; times < 6; times += 1) await next()

    await service.stop()

    expect(clock.waiting).toBe(0)
    expect(service.times).toBe(6)
  })

  test('reports a thrown string too', async () => {
    const { service, next } = setup(['no' as unknown as Error])

    await next()
    await service.stop()

    expect(service.failure).toMatchObject({ failures: 1, error: 'no' })
  })
})

describe('a periodic service', () => {
  class Beating extends PeriodicService<number> {
    override readonly name = 'beating'
    readonly #failing: readonly number[]
    times = 0

    constructor(clock: ManualClock, failing: readonly number[], periodMs: number) {
      super({ clock, events: new Events() }, periodMs)
      this.#failing = failing
    }

    override runOnce(): Promise<number> {
      this.times += 1
      return this.#failing.includes(this.times) ? Promise.reject(new Error('no')) : Promise.resolve(this.times)
    }
  }

  /** How long the service sleeps after each call of runOnce. */
  async function sleepsOf(periodMs: number, failing: readonly number[], times: number): Promise<number[]> {
    const clock = new WatchedClock('2026-03-02T09:00:00Z')
    await using service = new Beating(clock, failing, periodMs)
    service.start()
    for (let time = 1; time <= times; time += 1) {
      while (service.times !== time || clock.waiting === 0) await setImmediate()
      if (time < times) clock.advance(clock.sleeps.at(-1) ?? 0)
    }
    return clock.sleeps
  }

  test('rests for its period, and runs again soon after a failure, however long the period', async () => {
    expect(await sleepsOf(3_600_000, [2, 3], 4)).toEqual([3_600_000, 1000, 2000, 3_600_000])
    expect(await sleepsOf(100, [2, 3], 4)).toEqual([100, 100, 200, 100])
  })

  test('pauses for at most a minute if it keeps failing, and for at most five seconds if its period is short', async () => {
    const always = Array.from({ length: 9 }, (_, n) => n + 1)

    expect((await sleepsOf(3_600_000, always, 9)).slice(-3)).toEqual([60_000, 60_000, 60_000])
    expect((await sleepsOf(1000, always, 9)).slice(-3)).toEqual([5000, 5000, 5000])
  })
})
