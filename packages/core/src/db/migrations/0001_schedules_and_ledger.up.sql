-- Schedules, their revisions, the ledger, and the workers that keep them.
-- Why: the first schema. Locks: none that matter, nothing exists yet. Old workers: there are none.

create type carillon.schedule_state as enum ('active', 'paused', 'completed', 'deleted');
create type carillon.schedule_change as enum
  ('created', 'edited', 'paused', 'resumed', 'completed', 'deleted', 'slot_skipped', 'slot_restored');
create type carillon.cadence_kind as enum ('once', 'cron', 'rrule', 'interval', 'frequency');
create type carillon.run_trigger as enum ('schedule', 'manual');
create type carillon.run_state as enum
  ('pending', 'running', 'retrying', 'succeeded', 'failed', 'cancelled', 'skipped');
create type carillon.run_reason as enum
  ('overlap', 'missed', 'paused', 'grant_expired', 'grant_revoked', 'grant_scope', 'access_lost', 'excluded', 'superseded');
create type carillon.attempt_outcome as enum ('succeeded', 'failed', 'cancelled', 'malformed', 'lost');
create type carillon.finding_kind as enum
  ('slot_lost', 'slot_unknown', 'schedule_past_due', 'run_without_lease', 'run_without_job', 'job_without_run');

-- Durable, scoped, revocable rights to execute (I8). A schedule never holds a credential.
create table carillon.execution_grants (
  id uuid primary key,
  tenant_id text collate "C" not null check (length(tenant_id) between 1 and 100),
  project_id text collate "C" not null check (length(project_id) between 1 and 100),
  subject text not null,
  billing_account_id text,
  scopes text[] not null check (cardinality(scopes) > 0),
  expires_at timestamptz,
  revoked_at timestamptz,
  revoked_by_subject text,
  created_by_subject text not null,
  created_at timestamptz not null,
  -- Lists of a project, and what schedules refer to: a grant of another tenant cannot be referred to.
  unique (tenant_id, project_id, id)
);

-- The hot state of a schedule, kept narrow: the pipeline rewrites this row once per slot. What it says is in its revisions.
create table carillon.schedules (
  id uuid primary key,
  tenant_id text collate "C" not null check (length(tenant_id) between 1 and 100),
  project_id text collate "C" not null check (length(project_id) between 1 and 100),
  owner_subject text not null,
  target_kind text collate "C" not null check (target_kind ~ '^[a-z][a-z0-9_]{0,30}$'),
  -- One tenant's herd fills one lane; a claim shares its batch among lanes. The hash only spreads: nothing breaks should
  -- another version of Postgres compute it differently.
  lane text collate "C" not null generated always as (target_kind || '.' || (hashtext(tenant_id) & 63)::text) stored,
  state carillon.schedule_state not null,
  revision integer not null check (revision > 0),
  grant_id uuid,
  next_slot_at timestamptz check (next_slot_at = date_trunc('milliseconds', next_slot_at)),
  due_at timestamptz,
  -- Future slots that somebody asked to skip; null if none.
  excluded_slots timestamptz[] check (cardinality(excluded_slots) between 1 and 100),
  auto_pause_threshold smallint not null check (auto_pause_threshold = 0 or auto_pause_threshold between 3 and 100),
  consecutive_failures integer not null default 0 check (consecutive_failures >= 0),
  run_count bigint not null default 0,
  failure_count bigint not null default 0,
  -- The latest actor of each kind of change; all of them are in schedule_changes.
  created_by_subject text not null,
  created_at timestamptz not null,
  updated_by_subject text,
  updated_at timestamptz,
  paused_by_subject text,
  paused_reason text,
  paused_at timestamptz,
  resumed_by_subject text,
  resumed_at timestamptz,
  deleted_by_subject text,
  deleted_at timestamptz,
  -- I1: the agenda is this column and nothing else.
  constraint schedules_active_has_next_slot check ((state = 'active') = (next_slot_at is not null)),
  constraint schedules_slot_has_due check ((next_slot_at is null) = (due_at is null) and due_at >= next_slot_at),
  constraint schedules_paused_says_why check ((state = 'paused') <= (paused_at is not null and paused_reason is not null)),
  constraint schedules_deleted_says_when check ((state = 'deleted') = (deleted_at is not null)),
  -- Lists of a project in the order of creation, and what other tables refer to.
  unique (tenant_id, project_id, id),
  foreign key (tenant_id, project_id, grant_id) references carillon.execution_grants (tenant_id, project_id, id)
) with (
  -- Room for new versions of a row beside the old one.
  fillfactor = 60,
  autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_vacuum_cost_delay = 0
);

-- Serves look and claim: the earliest slots of a lane. The only index whose column the pipeline changes.
create index schedules_agenda_idx on carillon.schedules (lane, due_at, id) where state = 'active';
-- Serves retention: schedules deleted long ago.
create index schedules_deleted_idx on carillon.schedules (deleted_at) where state = 'deleted';

-- What a schedule says, once per edit, never changed: a run points at the revision that began it (I5).
create table carillon.schedule_revisions (
  schedule_id uuid not null,
  revision integer not null check (revision > 0),
  tenant_id text collate "C" not null,
  project_id text collate "C" not null,
  name text not null check (length(name) between 1 and 200),
  cadence_kind carillon.cadence_kind not null,
  -- json, not jsonb: what was written is what is sent, in the same order.
  cadence_once json,
  cadence_cron json,
  cadence_rrule json,
  cadence_interval json,
  cadence_frequency json,
  target_kind text collate "C" not null,
  target json not null,
  policy json not null,
  grant_id uuid,
  changed_by_subject text not null,
  changed_at timestamptz not null,
  primary key (schedule_id, revision),
  foreign key (tenant_id, project_id, schedule_id) references carillon.schedules (tenant_id, project_id, id),
  foreign key (tenant_id, project_id, grant_id) references carillon.execution_grants (tenant_id, project_id, id),
  constraint schedule_revisions_one_cadence check (
    num_nonnulls(cadence_once, cadence_cron, cadence_rrule, cadence_interval, cadence_frequency) = 1
    and case cadence_kind
      when 'once' then cadence_once is not null
      when 'cron' then cadence_cron is not null
      when 'rrule' then cadence_rrule is not null
      when 'interval' then cadence_interval is not null
      when 'frequency' then cadence_frequency is not null
    end
  )
);

-- Who did what to a schedule, and from which slot on it was then awaited: what the auditor recomputes slots from.
create table carillon.schedule_changes (
  -- Grows within a schedule: changes are made under its row's lock.
  id bigint generated always as identity primary key,
  schedule_id uuid not null,
  tenant_id text collate "C" not null,
  project_id text collate "C" not null,
  change carillon.schedule_change not null,
  revision integer not null,
  -- The next slot after the change; null if the schedule was no longer active.
  next_slot_at timestamptz,
  actor_subject text not null,
  reason text,
  changed_at timestamptz not null,
  foreign key (tenant_id, project_id, schedule_id) references carillon.schedules (tenant_id, project_id, id)
);

-- Serves the history of a schedule, in order.
create index schedule_changes_schedule_idx on carillon.schedule_changes (schedule_id, id);

-- The ledger. One row per slot, for ever unique (I2). Partitioned by the slot's month, so that old months are dropped.
-- No foreign key to schedules: a row is only ever written from the locked row of its schedule, and the check of a key costs
-- every slot a lookup and a lock more.
create table carillon.runs (
  schedule_id uuid not null,
  scheduled_for timestamptz not null check (scheduled_for = date_trunc('milliseconds', scheduled_for)),
  id uuid not null,
  tenant_id text collate "C" not null,
  project_id text collate "C" not null,
  revision integer not null,
  trigger carillon.run_trigger not null,
  state carillon.run_state not null,
  reason carillon.run_reason,
  attempt_count smallint not null default 0,
  -- The fence (I12): grows whenever a worker takes the run. A write that names another number changes nothing.
  token integer not null default 0,
  -- Who holds the run while it is running; a lease for as long as that worker's heartbeat is fresh.
  worker_id uuid,
  begun_at timestamptz not null,
  started_at timestamptz,
  retry_at timestamptz,
  cancel_requested_at timestamptz,
  cancel_requested_by_subject text,
  completed_at timestamptz,
  error json,
  primary key (schedule_id, scheduled_for),
  constraint runs_terminal_is_completed check
    ((state in ('succeeded', 'failed', 'cancelled', 'skipped')) = (completed_at is not null)),
  constraint runs_running_has_worker check ((state = 'running') = (worker_id is not null)),
  constraint runs_skipped_says_why check (state <> 'skipped' or reason is not null),
  constraint runs_retrying_says_when check ((state = 'retrying') = (retry_at is not null))
) partition by range (scheduled_for);

-- Serves GET of a run.
create index runs_id_idx on carillon.runs (id);
-- Serves overlap at begin, the rescuer and the auditor: the few runs that are not over.
create index runs_open_idx on carillon.runs (schedule_id, scheduled_for) where state in ('pending', 'running', 'retrying');

create table carillon.attempts (
  schedule_id uuid not null,
  scheduled_for timestamptz not null,
  attempt smallint not null check (attempt > 0),
  tenant_id text collate "C" not null,
  project_id text collate "C" not null,
  worker_id uuid not null,
  outcome carillon.attempt_outcome not null,
  started_at timestamptz not null,
  completed_at timestamptz not null,
  error json,
  result json,
  primary key (schedule_id, scheduled_for, attempt)
) partition by range (scheduled_for);

-- The processes that keep the agenda. Of no tenant: a worker serves them all.
create table carillon.workers (
  id uuid primary key,
  name text not null,
  target_kinds text[] not null,
  started_at timestamptz not null,
  heartbeat_at timestamptz not null,
  -- Every run it holds is its own until then, and anybody's afterwards.
  lease_expires_at timestamptz not null,
  -- Under which names it locks jobs in the engine, so that a rescuer can free them.
  engine_worker_ids text[] not null default '{}'
) with (fillfactor = 50);

-- What an audit found, and whether it was mended.
create table carillon.audits (
  id uuid primary key,
  audited_from timestamptz not null,
  audited_to timestamptz not null,
  started_at timestamptz not null,
  completed_at timestamptz not null,
  schedule_count bigint not null,
  slot_count bigint not null,
  -- What could not be audited: schedules whose spec cannot be read, and those with more slots than one audit compares.
  unreadable_count bigint not null,
  truncated_count bigint not null,
  finding_count bigint not null,
  repaired_count bigint not null
);

create table carillon.audit_findings (
  audit_id uuid not null references carillon.audits (id) on delete cascade,
  ordinal integer not null,
  kind carillon.finding_kind not null,
  -- Null for a job of no known run.
  tenant_id text collate "C",
  project_id text collate "C",
  schedule_id uuid,
  scheduled_for timestamptz,
  detail text not null,
  is_repaired boolean not null,
  primary key (audit_id, ordinal)
);

-- Serves the findings of a project, newest first.
create index audit_findings_project_idx on carillon.audit_findings (tenant_id, project_id, audit_id);
