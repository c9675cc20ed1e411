import { systemClock } from '../../src/kernel/clock.ts'
import { ManualClock } from '../manual-clock.ts'

const PAUSE_MAX_MS = 2
const TIMER_SHARE = 1 / 100

/** A clock whose instant only the model moves. Sleeps and timers take real time, but only a fraction of what is asked for. */
export class ModelClock extends ManualClock {
  override sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return systemClock.sleep(Math.min(ms, PAUSE_MAX_MS), signal)
  }

  override after(ms: number, callback: () => void): () => void {
    return systemClock.after(ms * TIMER_SHARE, callback)
  }
}
