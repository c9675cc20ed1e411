import { systemClock } from '../../src/kernel/clock.ts'
import { ManualClock } from '../manual-clock.ts'

const PAUSE_MAX_MS = 2
const TIMER_SHARE = 1 / 100

/** Statements see an instant that only the model moves. Pauses between tries pass by the wall, but hardly take any time. */
export class ModelClock extends ManualClock {
  override sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return systemClock.sleep(Math.min(ms, PAUSE_MAX_MS), signal)
  }

  override after(ms: number, callback: () => void): () => void {
    return systemClock.after(ms * TIMER_SHARE, callback)
  }
}
