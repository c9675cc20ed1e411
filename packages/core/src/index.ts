// The parts of the contract (`@carillon/api`) that a program which embeds core needs as well.
export { INSTALLATION_SUBJECT } from '@carillon/api'
export type { RetryPolicy, Role, TenantInput } from '@carillon/api'
export type { Caller } from './kernel/scope.ts'
export type { Clock } from './kernel/clock.ts'
export { systemClock } from './kernel/clock.ts'
export { CarillonError, type ErrorCode, type Problem } from './kernel/errors.ts'
export { EventLoopYield } from './kernel/event-loop-yield.ts'
export { Events } from './kernel/events.ts'
export type { EventMap, EventName } from './kernel/events.ts'
export { FailureRecord, FORGET_AFTER_MS, pauseAfter } from './kernel/failure-record.ts'
export type { MonitoredPart } from './kernel/failure-record.ts'
export { slotsOf } from './schedules/slots.ts'
export type { NamePageOptions, PageOptions } from './kernel/checked-object.ts'
export type { Check } from './doctor/checks.ts'
export { Doctor } from './doctor/doctor.ts'
export type { DoctorDeps, WorkerRecord } from './doctor/doctor.ts'
export { EventLog } from './event-log/event-log.ts'
export type { EventLogEntry, EventLogPage } from './event-log/event-log.ts'
export { type Grant, type GrantInput, type GrantRenewal, Grants, type GrantsDeps } from './access/grants.ts'
export { type ApiKey, type KeyInput, Keys, type KeysDeps } from './access/keys.ts'
export type { CreatePlan, EditPlan } from './schedules/draft.ts'
export { Scheduler } from './scheduler.ts'
export type {
  ChangeOptions,
  ListOptions,
  Preview,
  PreviewInput,
  RunPage,
  HistoryPage,
  SchedulerDeps,
  SchedulerOptions,
  ScheduleSlot,
  SlotPreview,
  SlotRange,
} from './schedules/options.ts'
export type { CreatedManyOnce, CreatedOnce } from './schedules/create-once.ts'
export { describeCadence } from './cadences/cadence-cache.ts'
export { checkManifests, RESERVED_WORDS } from './modules/manifests.ts'
export { sharedDeps, type ModuleDbs, type SharedDeps } from './modules/deps.ts'
export { loadModules, type LoadedModules, type LoadOptions } from './modules/registry.ts'
export { selectModules, type ModuleNeeds } from './modules/selection.ts'
export { PeriodicService, Service, type ServiceDeps } from './kernel/service.ts'
export type { TargetKind } from './schedules/target-kinds.ts'
export { echoTarget } from './targets/echo.ts'
export { Worker } from './worker.ts'
export type { WorkerOptions } from './worker.ts'
export type { ScheduleEdit, ScheduleInput } from './schedules/input.ts'
export type { Json } from './kernel/json.ts'
export type { AccessRequest, AuthorizationPort } from './ports/authorization.ts'
export type { OutboundAnswer, OutboundClient, OutboundEnd, OutboundRefusal, OutboundRequest } from './ports/outbound.ts'
export type { SecretName, SecretStore } from './ports/secret-store.ts'
export type { SchedulePolicy } from './policy/schedule-policy.ts'
export type { Attempt, Run, Schedule, ScheduleChange } from './ledger/records.ts'
export { RequestRefusal } from './ports/request-refusal.ts'
export { MODULE_PORT } from './ports/module.ts'
export type {
  AnyManifest,
  LoadedModule,
  ModuleCall,
  ModuleCheck,
  ModuleDeps,
  ModuleFinding,
  ModuleHandler,
  ModuleManifest,
  ModuleParts,
  ModuleService,
  ModuleTurn,
  PortToken,
  RawRoute,
} from './ports/module.ts'
export { isAfterLine, isTranscriptComplete } from './ledger/transcripts.ts'
export type { TranscriptLine, TranscriptPage, TranscriptPageOptions } from './ledger/transcripts.ts'
export type { CompletedAttempt, Completion, CompletionAnswer, RunsPort } from './ports/runs.ts'
export type {
  Admission,
  AttemptEnd,
  AttemptError,
  Callback,
  Candidate,
  DrainRule,
  Outcome,
  PlacedDraft,
  RunIdentity,
  ScheduleDraft,
  ScheduleEffect,
  Target,
  TargetContext,
  TargetGrant,
  TargetLimits,
  TargetPolicy,
  TranscriptEntry,
} from './ports/target.ts'
export type { Audit, Finding } from './audit/audits.ts'
export { Callbacks, type CallbacksDeps, type HeartbeatAnswer } from './ledger/callbacks.ts'
export { Runs } from './ledger/completions.ts'
export { createDb } from './db/database.ts'
export type { Db, Pool, Tx } from './db/database.ts'
export { apiRole, isSchemaName, SCHEMA_DEFAULT, SCHEMA_EXPECTED, workerRole } from './db/schema-name.ts'
export { renewLogins } from './db/server.ts'
export { migrate, migrateDown, migrationStatus, missingMigrationsText } from './db/migrate.ts'
export { ensurePartitions } from './db/months.ts'
export { createPool } from './db/pool.ts'
export type { PoolOptions, SeverablePool } from './db/pool.ts'
export { sqlStateOf } from './db/sqlstate.ts'
export {
  BuiltInSecretStore,
  type BuiltInSecretStoreDeps,
  type SecretRecord,
  Secrets,
  type SecretsDeps,
} from './access/secrets.ts'
export { type Member, MembershipAuthorization, Members, type MembersDeps } from './access/members.ts'
export { Projects, type ProjectsDeps, type PurgeCounts, type PurgeInput } from './maintenance/purge.ts'
export { SecretRotation } from './access/secret-rotation.ts'
export type { RotatedSecrets, SecretRotationDeps } from './access/secret-rotation.ts'
export { type TenantLimits, Tenants, type TenantsDeps } from './access/tenants.ts'
export { VERSION } from './kernel/version.ts'
