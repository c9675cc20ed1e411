import type { Caller } from '../caller.ts'
import type { Schedule } from '../schedule.ts'
import { own } from '../service.ts'
import { create, createTogether } from './created-schedule.ts'
import type { ScheduleInput } from './schedule-input.ts'
import type { SchedulerContext } from './scheduler-context.ts'

interface Waiting {
  readonly input: ScheduleInput
  readonly resolve: (schedule: Schedule) => void
  readonly reject: (error: unknown) => void
}

/** What one caller has asked for and is not written yet, and how many transactions of theirs are under way. */
interface Line {
  waiting: Waiting[]
  writers: number
}

/** While one transaction is decided another one is written. More would find less to gather. */
const WRITERS = 2
const TOGETHER_MAX = 100

/**
 * Makes schedules one by one for each who asks, and together what the same caller asks for while others of theirs are being
 * written: a transaction costs many times what another schedule in it does. A lone create does not wait for anybody.
 *
 * Each stands for itself. If together they are refused, each is tried alone, so that one that is wrong fails alone.
 */
export class CreateDesk {
  readonly #context: SchedulerContext
  readonly #lines = new Map<string, Line>()

  constructor(context: SchedulerContext) {
    this.#context = context
  }

  create(caller: Caller, input: ScheduleInput): Promise<Schedule> {
    return new Promise((resolve, reject) => {
      const name = nameOf(caller)
      const line = this.#lines.get(name) ?? { waiting: [], writers: 0 }
      this.#lines.set(name, line)
      line.waiting.push({ input, resolve, reject })
      if (line.writers < WRITERS) own(this.#context, 'creates', this.#writeAll(caller, name, line))
    })
  }

  async #writeAll(caller: Caller, name: string, line: Line): Promise<void> {
    line.writers += 1
    try {
      // One turn of the event loop: what is asked for at once is written at once.
      await Promise.resolve()
      while (line.waiting.length > 0) await this.#write(caller, line.waiting.splice(0, TOGETHER_MAX))
    } finally {
      line.writers -= 1
      if (line.writers === 0) this.#lines.delete(name)
    }
  }

  async #write(caller: Caller, batch: readonly Waiting[]): Promise<void> {
    if (batch.length === 1) return this.#writeEach(caller, batch)
    try {
      const inputs = batch.map(({ input }) => input)
      const schedules = await createTogether(this.#context, caller, inputs)
      if (schedules === null) return await this.#writeEach(caller, batch)
      for (const [place, schedule] of schedules.entries()) batch[place]?.resolve(schedule)
    } catch (error) {
      // They may be there: made again they would be there twice.
      for (const { reject } of batch) reject(error)
    }
  }

  async #writeEach(caller: Caller, batch: readonly Waiting[]): Promise<void> {
    await Promise.all(
      batch.map(({ input, resolve, reject }) => create(this.#context, caller, input).then(resolve, reject)),
    )
  }
}

function nameOf({ tenantId, projectId, subject }: Caller): string {
  return JSON.stringify([tenantId, projectId, subject])
}
