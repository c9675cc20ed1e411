/**
 * The tables of schema carillon as the driver reads and writes them. Generated: `npm run schema` writes it anew, and a
 * test compares. A bigint is a string when read, since node-postgres does not trust it to fit a number.
 */
import type { ColumnType } from 'kysely'

type ArrayType<T> = ArrayTypeImpl<T> extends (infer U)[] ? U[] : ArrayTypeImpl<T>

type ArrayTypeImpl<T> = T extends ColumnType<infer S, infer I, infer U> ? ColumnType<S[], I[], U[]> : T[]

type CarillonAttemptOutcome = 'cancelled' | 'failed' | 'lost' | 'malformed' | 'succeeded'

type CarillonCadenceKind = 'cron' | 'frequency' | 'interval' | 'once' | 'rrule'

type CarillonFeedKind = 'run' | 'schedule'

type CarillonFindingKind =
  | 'attempt_missing'
  | 'count_wrong'
  | 'revision_missing'
  | 'run_contradicted'
  | 'run_stuck'
  | 'run_without_lease'
  | 'schedule_past_due'
  | 'slot_lost'
  | 'slot_unknown'

type CarillonRole = 'admin' | 'member'

type CarillonRunReason =
  | 'access_lost'
  | 'excluded'
  | 'grant_expired'
  | 'grant_revoked'
  | 'grant_scope'
  | 'missed'
  | 'overlap'
  | 'paused'
  | 'superseded'

type CarillonRunState = 'cancelled' | 'failed' | 'pending' | 'retrying' | 'running' | 'skipped' | 'succeeded'

type CarillonRunTrigger = 'manual' | 'schedule'

type CarillonRunWait = 'completion' | 'deferred' | 'retry' | 'turn' | 'worker'

type CarillonScheduleChange =
  | 'completed'
  | 'created'
  | 'deleted'
  | 'edited'
  | 'grant_expiring'
  | 'grant_renewed'
  | 'grant_revoked'
  | 'paused'
  | 'resumed'
  | 'slot_restored'
  | 'slot_skipped'

type CarillonScheduleState = 'active' | 'completed' | 'deleted' | 'paused'

type Generated<T> =
  T extends ColumnType<infer S, infer I, infer U> ? ColumnType<S, I | undefined, U> : ColumnType<T, T | undefined, T>

type Int8 = ColumnType<string, bigint | number | string, bigint | number | string>

type Json = JsonValue

type JsonArray = JsonValue[]

type JsonObject = {
  [x: string]: JsonValue | undefined
}

type JsonPrimitive = boolean | number | string | null

type JsonValue = JsonArray | JsonObject | JsonPrimitive

type Timestamp = ColumnType<Date, Date | string, Date | string>

interface CarillonApiKeys {
  created_at: Timestamp
  created_by_subject: string
  hash: Buffer
  id: string
  prefix: string
  project_id: string
  revoked_at: Timestamp | null
  revoked_by_subject: string | null
  role: CarillonRole
  subject: string
  tenant_id: string
}

interface CarillonAttempts {
  attempt: number
  completed_at: Timestamp
  error: Json | null
  outcome: CarillonAttemptOutcome
  project_id: string
  result: Json | null
  schedule_id: string
  scheduled_for: Timestamp
  started_at: Timestamp
  tenant_id: string
  worker_id: string
}

interface CarillonAuditFindings {
  audit_id: string
  detail: string
  found_at: Timestamp
  is_repaired: boolean
  kind: CarillonFindingKind
  ordinal: number
  project_id: string | null
  schedule_id: string | null
  scheduled_for: Timestamp | null
  tenant_id: string | null
}

interface CarillonAudits {
  audited_from: Timestamp
  audited_to: Timestamp
  completed_at: Timestamp
  finding_count: Int8
  id: string
  is_whole: boolean
  lost_count: Generated<Int8>
  repaired_count: Int8
  schedule_count: Int8
  slot_count: Int8
  started_at: Timestamp
  truncated_count: Int8
  unreadable_count: Int8
}

interface CarillonExecutionGrants {
  billing_account_id: string | null
  created_at: Timestamp
  created_by_subject: string
  expires_at: Timestamp | null
  id: string
  project_id: string
  revoked_at: Timestamp | null
  revoked_by_subject: string | null
  schedule_id: string | null
  scopes: string[]
  subject: string
  tenant_id: string
  warned_at: Timestamp | null
}

interface CarillonFeedEntries {
  changes: string[]
  id: Generated<Int8>
  kind: CarillonFeedKind
  noted_at: Generated<Timestamp>
  project_id: string
  schedule_ids: string[]
  slots: ArrayType<Timestamp> | null
  tenant_id: string
  xact_id: Generated<string>
}

interface CarillonFeedFloor {
  forgotten_id: Int8
  is_only: Generated<boolean>
}

interface CarillonIdempotentAnswers {
  answer: Json
  answered_at: Timestamp
  key: string
  project_id: string
  request_hash: Buffer
  schedule_id: string
  subject: string
  tenant_id: string
}

interface CarillonLiveSchedules {
  owner_subject: string
  project_id: string
  schedule_id: string
  tenant_id: string
}

interface CarillonMembers {
  added_at: Timestamp
  added_by_subject: string
  project_id: string
  removed_at: Timestamp | null
  removed_by_subject: string | null
  role: CarillonRole
  subject: string
  tenant_id: string
}

interface CarillonMigrations {
  applied_at: Timestamp
  checksum: string
  name: string
  number: number
}

interface CarillonRuns {
  attempt_count: Generated<number>
  begun_at: Timestamp
  cancel_requested_at: Timestamp | null
  cancel_requested_by_subject: string | null
  completed_at: Timestamp | null
  due_at: Timestamp | null
  error: Json | null
  id: string
  lane: string | null
  project_id: string
  reason: CarillonRunReason | null
  revision: number
  schedule_id: string
  scheduled_for: Timestamp
  settles_locked: Generated<boolean>
  started_at: Timestamp | null
  state: CarillonRunState
  tenant_id: string
  token: Generated<number>
  trigger: CarillonRunTrigger
  waits_for: CarillonRunWait | null
  worker_id: string | null
}

interface CarillonScheduleChanges {
  actor_subject: string
  change: CarillonScheduleChange
  changed_at: Timestamp
  id: Generated<Int8>
  next_slot_at: Timestamp | null
  project_id: string
  reason: string | null
  revision: number
  schedule_id: string
  tenant_id: string
}

interface CarillonScheduleRevisions {
  cadence_cron: Json | null
  cadence_frequency: Json | null
  cadence_interval: Json | null
  cadence_kind: CarillonCadenceKind
  cadence_once: Json | null
  cadence_rrule: Json | null
  changed_at: Timestamp
  changed_by_subject: string
  grant_id: string
  name: string
  policy: Json
  project_id: string
  required_scope: string
  revision: number
  schedule_id: string
  target: Json
  target_kind: string
  tenant_id: string
}

interface CarillonSchedules {
  auto_pause_threshold: number
  consecutive_failures: Generated<number>
  created_at: Timestamp
  created_by_subject: string
  deleted_at: Timestamp | null
  deleted_by_subject: string | null
  due_at: Timestamp | null
  excluded_slots: ArrayType<Timestamp> | null
  failure_count: Generated<Int8>
  grant_id: string
  id: string
  lane: string
  next_slot_at: Timestamp | null
  owner_subject: string
  paused_at: Timestamp | null
  paused_by_subject: string | null
  paused_reason: string | null
  project_id: string
  resumed_at: Timestamp | null
  resumed_by_subject: string | null
  revision: number
  run_count: Generated<Int8>
  state: CarillonScheduleState
  target_kind: string
  tenant_id: string
  updated_at: Timestamp | null
  updated_by_subject: string | null
}

interface CarillonSecrets {
  ciphertext: Buffer
  created_at: Timestamp
  created_by_subject: string
  key_id: string
  name: string
  nonce: Buffer
  project_id: string
  tenant_id: string
  updated_at: Timestamp
  updated_by_subject: string
  version: number
}

interface CarillonServiceTurns {
  cursor: Json | null
  name: string
  next_at: Timestamp
  reached_at: Timestamp | null
  requested_at: Timestamp | null
  until: Timestamp | null
  worker_id: string | null
}

interface CarillonSlotBacklogs {
  excluded_slots: ArrayType<Timestamp> | null
  made_at: Timestamp
  next_slot_at: Timestamp
  project_id: string
  reason: CarillonRunReason
  revision: number
  schedule_id: string
  tenant_id: string
  until: Timestamp
}

interface CarillonTenants {
  allowed_hosts: string[] | null
  max_schedules_per_project: number | null
  max_schedules_per_user: number | null
  minimum_seconds: number | null
  requests_per_minute: number | null
  tenant_id: string
  updated_at: Timestamp
  updated_by_subject: string
}

interface CarillonWorkers {
  failing: Json | null
  full_at: Timestamp | null
  heartbeat_at: Timestamp
  id: string
  lease_expires_at: Timestamp
  name: string
  started_at: Timestamp
  target_kinds: string[]
  tzdata_version: string | null
  version: string | null
}

export interface DB {
  'carillon.api_keys': CarillonApiKeys
  'carillon.attempts': CarillonAttempts
  'carillon.audit_findings': CarillonAuditFindings
  'carillon.audits': CarillonAudits
  'carillon.execution_grants': CarillonExecutionGrants
  'carillon.feed_entries': CarillonFeedEntries
  'carillon.feed_floor': CarillonFeedFloor
  'carillon.idempotent_answers': CarillonIdempotentAnswers
  'carillon.live_schedules': CarillonLiveSchedules
  'carillon.members': CarillonMembers
  'carillon.migrations': CarillonMigrations
  'carillon.runs': CarillonRuns
  'carillon.schedule_changes': CarillonScheduleChanges
  'carillon.schedule_revisions': CarillonScheduleRevisions
  'carillon.schedules': CarillonSchedules
  'carillon.secrets': CarillonSecrets
  'carillon.service_turns': CarillonServiceTurns
  'carillon.slot_backlogs': CarillonSlotBacklogs
  'carillon.tenants': CarillonTenants
  'carillon.workers': CarillonWorkers
}
