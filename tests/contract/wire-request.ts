import type { ScheduleInput } from '@carillon/api'

/** A request for one operation. */
export interface WireRequest {
  readonly id?: string
  /** The parameters of a path that has others than `{id}`. */
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
  /** @default the admin key */
  readonly key?: string
  /** Called after the answer. */
  readonly release?: () => Promise<void>
}

/** A valid schedule. */
export const SCHEDULE: ScheduleInput = {
  name: 'Digest',
  cadence: { kind: 'cron', expression: '0 9 * * 1-5', timezone: 'Europe/Madrid' },
  target: { kind: 'http', url: 'http://127.0.0.1:9000/digest', payload: { list: 'a' } },
}
