export type { Caller } from './caller.ts'
export type { Clock } from './clock.ts'
export { systemClock } from './clock.ts'
export { CarillonError, ERROR_CODES } from './errors.ts'
export type { ErrorCode } from './errors.ts'
export { Events } from './events.ts'
export type { EventMap, EventName } from './events.ts'
export { slotsOf } from './facade/cadence-slots.ts'
export type { PageOptions } from './facade/checked-object.ts'
export type { Check } from './facade/checks.ts'
export { Doctor } from './facade/doctor.ts'
export type { DoctorDeps } from './facade/doctor.ts'
export { Feed } from './facade/feed.ts'
export type { FeedEntry, FeedPage } from './facade/feed.ts'
export { Grants } from './facade/grants.ts'
export type { GrantInput, GrantsDeps } from './facade/grants.ts'
export { Keys } from './facade/keys.ts'
export type { KeyInput, KeysDeps } from './facade/keys.ts'
export type { CreatePlan } from './facade/create-plan.ts'
export { Scheduler } from './facade/scheduler.ts'
export type {
  ChangeOptions,
  ListOptions,
  Preview,
  PreviewInput,
  RunPage,
  SchedulerDeps,
  SchedulerOptions,
  ScheduleSlot,
  SlotPreview,
  SlotRange,
} from './facade/scheduler-options.ts'
export type { EditPlan } from './facade/edit-plan.ts'
export type { CreatedOnce } from './facade/idempotent-create.ts'
export { describeCadence } from './facade/schedule-cadence.ts'
export { Worker } from './facade/worker.ts'
export type { WorkerOptions } from './facade/worker.ts'
export type { ScheduleEdit, ScheduleInput } from './facade/schedule-input.ts'
export type { Json } from './json.ts'
export type { RetryPolicy } from './policy/retry.ts'
export type { SchedulePolicy } from './policy/schedule-policy.ts'
export type { Problem } from './problem.ts'
export type { Attempt, Run, Schedule, ScheduleChange, ScheduleState } from './schedule.ts'
export type { AttemptError, Outcome, Target, TargetContext } from './target.ts'
export type { ApiKey, Role } from './store/api-keys.ts'
export type { Audit, Finding, FindingKind } from './store/audits.ts'
export { createDb } from './store/database.ts'
export type { Db } from './store/database.ts'
export type { Grant } from './store/grants.ts'
export { migrate, migrateDown, migrationStatus } from './store/migrate.ts'
export { ensurePartitions } from './store/partitions.ts'
export { createPool } from './store/pool.ts'
export type { PoolOptions } from './store/pool.ts'
export type { WorkerRecord } from './store/workers.ts'
export { TZDATA_VERSION, VERSION } from './version.ts'
