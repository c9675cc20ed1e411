/** I5: the key a target sees, the same on every attempt at a slot and distinct for every slot (E-43). */
export function idempotencyKey(scheduleId: string, scheduledFor: number): string {
  return `sched:${scheduleId}:${scheduledFor}`
}
