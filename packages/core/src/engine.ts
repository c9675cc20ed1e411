import type { Tx } from './store/database.ts'
import type { SlotName } from './store/waiting-runs.ts'

/** Jobs for slots that wait: retries, run-nows, rescues, and runs whose turn has come. */
export interface Jobs {
  /** Adds a job per slot in the caller's transaction, or moves the one that waits already. `runAt` null is at once. */
  enqueue(tx: Tx, slots: readonly (SlotName & { readonly runAt: number | null })[]): Promise<void>
  /** Takes back what waits for slots that are over. */
  withdraw(tx: Tx, slots: readonly SlotName[]): Promise<void>
}

/** What an engine calls. Every handler may be called twice for the same job: the ledger decides. */
export interface JobHandlers {
  /** The next attempt of a waiting run of one of the kinds this worker serves. */
  attempt(slot: { readonly scheduleId: string; readonly scheduledFor: number }): Promise<void>
  /** Nightly upkeep, on one worker at a time. */
  readonly upkeep: Readonly<Record<string, { readonly crontab: string; run(): Promise<void> }>>
}

/**
 * Keeps jobs and calls for them when they are due: at least once, on some worker. It is a hint and never the truth, which
 * is the ledger's (I12): a job lost is found by the auditor, a job too many finds nothing to do.
 */
export interface Engine {
  start(handlers: JobHandlers): Promise<void>
  /** Waits for handlers under way. Safe to call twice. */
  stop(): Promise<void>
  /** Under which names this process locks jobs, so that others can free them should it die. */
  readonly workerIds: readonly string[]
}
