export type { Caller } from './caller.ts'
export type { Clock } from './clock.ts'
export { systemClock } from './clock.ts'
export { CarillonError, ERROR_CODES } from './errors.ts'
export type { ErrorCode } from './errors.ts'
export { Events } from './events.ts'
export type { EventMap, EventName } from './events.ts'
export { Scheduler } from './facade/scheduler.ts'
export type {
  ChangeOptions,
  ListOptions,
  Preview,
  PreviewInput,
  SchedulerDeps,
  SchedulerOptions,
} from './facade/scheduler-options.ts'
export { Worker } from './facade/worker.ts'
export type { WorkerOptions } from './facade/worker.ts'
export type { ScheduleEdit, ScheduleInput } from './facade/schedule-input.ts'
export type { Json } from './json.ts'
export type { RetryPolicy } from './policy/retry.ts'
export type { SchedulePolicy } from './policy/schedule-policy.ts'
export type { Problem } from './problem.ts'
export type { Attempt, Run, Schedule, ScheduleChange, ScheduleState } from './schedule.ts'
export type { AttemptError, Outcome, Target, TargetContext } from './target.ts'
export type { Audit, Finding, FindingKind } from './store/audits.ts'
export { createDb } from './store/database.ts'
export type { Db } from './store/database.ts'
export { migrate, migrateDown, migrationStatus } from './store/migrate.ts'
export { ensurePartitions } from './store/partitions.ts'
export { createPool } from './store/pool.ts'
export type { PoolOptions } from './store/pool.ts'
