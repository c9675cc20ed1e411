import type { OverlapPolicy } from '@carillon/api'

import type { Schedule } from '../src/ledger/records.ts'
import type { Outcome } from '../src/ports/target.ts'
import { MINUTE, type Pipeline, type TestWorker } from './pipeline.ts'
import { heldEach } from './scripted-target.ts'

export interface HeldRun {
  readonly pipeline: Pipeline
  readonly worker: TestWorker
  readonly schedule: Schedule
  /** Answers a call of the target, 0 being the first, and waits until its attempt is settled. */
  readonly answer: (call: number, outcome: Outcome, worker?: TestWorker) => Promise<void>
  /** Lets the next slot come due while all workers keep their leases. */
  readonly nextSlot: (...others: readonly TestWorker[]) => Promise<void>
}

/** Creates a schedule that runs every minute, and starts its run of 09:01. Each call lasts until the test answers it. */
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
  await worker.startDue()
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
      await worker.startDue()
    },
  }
}
