/* Small valid arguments for the samples. Postgres sees none of them, because no statement runs. */

export const ID = '01a1e263-ba7c-773f-bb62-baa33c3da8f2'
export const IDS = [ID]
export const AT = Date.UTC(2026, 0, 1)
export const DATE = new Date(AT)
export const BYTES = Buffer.alloc(12)
export const ACTOR = 'user:alice'
/** As in production: Postgres' clock decides. */
export const NOW = { now: null }
export const SCOPE = { tenantId: 'acme', projectId: 'web' }
export const BY = { actor: ACTOR, ...NOW }
export const LIMIT = { limit: 10 }
/** The first page of a list, whichever way it is sorted. */
export const FIRST_PAGE = { before: null, after: null, ...LIMIT }
export const SCHEDULE_IDS = { scheduleIds: IDS }
/** A line of a run that waits for a worker. */
export const NEW_LINE = {
  ...SCOPE,
  id: ID,
  scheduleId: ID,
  revision: 1,
  scheduledFor: AT,
  trigger: 'schedule',
  state: 'pending',
  waits: { for: 'worker', targetKind: 'test' },
  reason: null,
  error: null,
} as const
