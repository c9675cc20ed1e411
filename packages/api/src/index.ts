export { FOLD_POLICIES, foundName, foundText, GAP_POLICIES } from '@carillon/cadence/words'

export { createClient } from './client.ts'
export type { Client } from './client.ts'
export { component } from './component.ts'
export { expected, expectedText, fieldProblems, messageOf, unknownFieldText } from './expected.ts'
export {
  AUTO_PAUSE_THRESHOLD,
  CREATE_MANY_MAX,
  DAY_MS,
  ECHO_PAYLOAD_MAX_BYTES,
  EVENT_LOG_ENTRIES,
  GRANT_WARNING_MS,
  HTTP_HEADERS,
  HTTP_PAYLOAD_MAX_BYTES,
  CALLBACK_TIMEOUT,
  HTTP_RETRY,
  HTTP_TIMEOUT_SECONDS,
  JSON_DEPTH_MAX,
  LAST_INSTANT_MS,
  LOST_SLOT_SHOWN_MS,
  PAGE_POSITION_MAX_LENGTH,
  PAGE_SIZE,
  PAUSE_REASON_MAX_LENGTH,
  PREVIEW_COUNT,
  PROBLEMS_MAX,
  PROJECT_SCHEDULES,
  REQUEST_BODY_MAX_BYTES,
  RETENTION_DAYS,
  RETRY_ATTEMPTS,
  BACKOFF_SECONDS,
  SCHEDULE_INPUT_MAX_LENGTH,
  SCHEDULE_NAME_MAX_LENGTH,
  SECRET_VALUE_MAX_LENGTH,
  SKIPPED_SLOTS_MAX,
  SLOT_COUNT,
  SPREAD_SECONDS,
  STARTING_DEADLINE_SECONDS,
  TENANT_SLOT_DISTANCE_SECONDS,
  TENANT_REQUESTS_PER_MINUTE,
  TRANSCRIPT_BYTES,
  TRANSCRIPT_ENTRY_MAX_BYTES,
  TRANSCRIPT_KIND_MAX_LENGTH,
  TRANSCRIPT_LINES_MAX,
  TRANSCRIPT_PAGE_MAX_BYTES,
  TRANSCRIPT_PAGE_SIZE,
  URL_MAX_LENGTH,
  USER_SCHEDULES,
} from './limits.ts'
export { createOpenApi } from './openapi.ts'
export { createOperationClient } from './operation-client.ts'
export type { OperationClient } from './operation-client.ts'
export { ADMIN_KEY_FILE, API_PREFIX, headerName, paramsIn, pathOf, problemsOf, SERVICE_DEFAULTS } from './operation.ts'
export type { Operation, OperationTable } from './operation.ts'
export { operationIds, operations } from './operations.ts'
export type { OperationId } from './operations.ts'
export { PROBLEM_CODES, PROBLEM_TYPES, problemTypeUri, RETRY_AFTER_PROBLEMS } from './problem.ts'
export type { FieldProblem, Problem, ProblemCode } from './problem.ts'
export type { AuditReport } from './schemas/audit.ts'
export type { CadenceInput } from './schemas/cadence.ts'
export type { LiveEvent } from './schemas/event.ts'
export type { TranscriptEvent, TranscriptLine } from './schemas/transcript.ts'
export {
  canonicalJson,
  idempotencyKey as idempotencyKeySchema,
  isNameableSubject,
  isStorable,
  isUuid,
  NAME_PATTERN,
  NAME_SHAPE,
  role as roleSchema,
  scopeName as scopeNameSchema,
  storableText,
  typedSubject,
  wholeNumber,
} from './schemas/fields.ts'
export { grantInput as grantInputSchema, grantRenewal as grantRenewalSchema } from './schemas/grant.ts'
export type { Grant, GrantInput, GrantRenewal } from './schemas/grant.ts'
export type { ApiKey, KeyInput, NewApiKey } from './schemas/key.ts'
export type { Member, MemberInput } from './schemas/member.ts'
export {
  policy as policySchema,
  retryPolicy as retryPolicySchema,
  strictPolicyInput as strictPolicyInputSchema,
} from './schemas/policy.ts'
export type { Policy, PolicyInput, RetryPolicy } from './schemas/policy.ts'
export { purgeRequest as purgeRequestSchema } from './schemas/project.ts'
export type { PurgeCounts } from './schemas/project.ts'
export type { Run, RunWithAttempts } from './schemas/run.ts'
export { SCHEDULE_EDIT_FIELDS, SCHEDULE_FIELDS } from './schemas/schedule.ts'
export type { EditPlan, Schedule, ScheduleEdit, ScheduleInput, SchedulePreview } from './schemas/schedule.ts'
export { namedSecretInput as namedSecretInputSchema } from './schemas/secret.ts'
export type { Secret } from './schemas/secret.ts'
export type { Preview } from './schemas/slot.ts'
export type { TargetKind } from './schemas/target-kind.ts'
export {
  SECRET_AUTH_KINDS,
  strictEchoTarget as strictEchoTargetSchema,
  strictHttpTarget as strictHttpTargetSchema,
} from './schemas/target.ts'
export type { HttpAuth } from './schemas/target.ts'
export { ApiError, RefusedError, UnreachableError } from './transport.ts'
export type { ClientOptions } from './transport.ts'
export { tenantInput as tenantInputSchema } from './schemas/tenant.ts'
export type { Tenant, TenantInput } from './schemas/tenant.ts'
export {
  ADMIN_KEY_PHRASE,
  ATTEMPT_OUTCOMES,
  explainRun,
  FINDING_KINDS,
  HTTP_METHOD_DEFAULT,
  HTTP_METHODS,
  INSTALLATION_SUBJECT,
  isRefusal,
  isRunChange,
  isRunOver,
  MISSED_POLICIES,
  OVERLAP_DEFAULT,
  OVERLAP_POLICIES,
  REFUSALS,
  ROLES,
  RUN_REASONS,
  RUN_STATES,
  RUN_TRIGGERS,
  RUN_WAITS,
  SCHEDULE_CHANGES,
  SCHEDULE_STATES,
  STORED_SCHEDULE_STATES,
  SYSTEM_SUBJECT,
  TRANSCRIPT_OWN_KINDS,
} from './words.ts'
export type {
  AttemptOutcome,
  FindingKind,
  HttpMethod,
  MissedPolicy,
  OverlapPolicy,
  Refusal,
  Role,
  RunChangeKind,
  ModuleReasons,
  RunReason,
  RunState,
  RunTrigger,
  RunWait,
  ScheduleChangeKind,
  ScheduleState,
  TranscriptOwnKind,
} from './words.ts'
export { durationMs } from './schemas/duration.ts'
