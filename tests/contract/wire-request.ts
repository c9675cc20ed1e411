import type { ScheduleInput } from '@carillon/api'

/** What is sent for one operation. */
export interface WireRequest {
  readonly id?: string
  readonly query?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
  /** @default that of the installation */
  readonly key?: string
  /** To be done once it was answered. */
  readonly release?: () => Promise<void>
}

/** A schedule that nothing is wrong with. */
export const SCHEDULE: ScheduleInput = {
  name: 'Digest',
  cadence: { kind: 'cron', expression: '0 9 * * 1-5', timezone: 'Europe/Madrid' },
  target: { kind: 'http', url: 'http://127.0.0.1:9000/digest', payload: { list: 'a' } },
}
