/** I5: the key a target sees, the same on every attempt at a slot and distinct for every slot (E-43). */
export function idempotencyKey(scheduleId: string, scheduledFor: number): string {
  return `sched:${scheduleId}:${scheduledFor}`
}

/** What the engine knows the waiting job of a slot by. It only dedupes jobs that wait; the ledger decides (I2). */
export function jobKey(scheduleId: string, scheduledFor: number): string {
  return `${scheduleId}:${new Date(scheduledFor).toISOString()}`
}
