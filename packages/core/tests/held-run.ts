import type { OverlapPolicy } from '@carillon/api'

import type { Schedule } from '../src/ledger/records.ts'
import type { Outcome } from '../src/ports/target.ts'
import { MINUTE, type Pipeline, type TestWorker } from './pipeline.ts'
import { heldEach } from './scripted-target.ts'

export interface HeldRun {
  readonly pipeline: Pipeline
  readonly worker: TestWorker
  readonly schedule: Schedule
  /** Ends a call of the target, the first is 0, and waits until that is settled. */
  readonly answer: (call: number, outcome: Outcome, worker?: TestWorker) => Promise<void>
  /** The next slot comes due, and everybody is alive. */
  readonly nextSlot: (...others: readonly TestWorker[]) => Promise<void>
}

/** A schedule of every minute whose 09:01 is under way, as every call will be until the test answers it. */
export async function holdRun(
  pipeline: Pipeline,
  { overlap, ...policy }: { overlap: OverlapPolicy; autoPauseThreshold?: number },
): Promise<HeldRun> {
  const worker = pipeline.worker()
  const target = { kind: 'test', timeoutSeconds: 86_400 }
  const schedule = await pipeline.create({ target, policy: { overlap, ...policy } })
  const { script, answers } = heldEach()
  pipeline.target.script = script
  pipeline.clock.advance(MINUTE / 2)
  await worker.begin()
  return {
    pipeline,
    worker,
    schedule,
    answer: async (call, outcome, by = worker) => {
      const settled = by.whenSettled()
      answers[call]?.(outcome)
      await settled
    },
    nextSlot: async (...others) => {
      await pipeline.pass(MINUTE, worker, ...others)
      await worker.begin()
    },
  }
}
