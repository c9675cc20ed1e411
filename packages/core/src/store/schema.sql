-- The schema carillon after all migrations, partitions aside. Generated: `npm run schema` writes it anew, and a test
-- compares. To read and to review, not to run: what changes the schema are the migrations.

create type carillon.attempt_outcome as enum ('succeeded', 'failed', 'cancelled', 'malformed', 'lost');

create type carillon.cadence_kind as enum ('once', 'cron', 'rrule', 'interval', 'frequency');

create type carillon.feed_kind as enum ('run', 'schedule');

create type carillon.finding_kind as enum ('slot_lost', 'slot_unknown', 'schedule_past_due', 'run_without_lease', 'run_without_job', 'job_without_run');

create type carillon.role as enum ('member', 'admin');

create type carillon.run_reason as enum ('overlap', 'missed', 'paused', 'grant_expired', 'grant_revoked', 'grant_scope', 'access_lost', 'excluded', 'superseded');

create type carillon.run_state as enum ('pending', 'running', 'retrying', 'succeeded', 'failed', 'cancelled', 'skipped');

create type carillon.run_trigger as enum ('schedule', 'manual');

create type carillon.schedule_change as enum ('created', 'edited', 'paused', 'resumed', 'completed', 'deleted', 'slot_skipped', 'slot_restored');

create type carillon.schedule_state as enum ('active', 'paused', 'completed', 'deleted');

create table carillon.api_keys (
  id uuid not null,
  tenant_id text collate "C" not null,
  project_id text collate "C" not null,
  subject text not null,
  role carillon.role not null,
  prefix text not null,
  hash bytea not null,
  created_by_subject text not null,
  created_at timestamp with time zone not null,
  revoked_by_subject text,
  revoked_at timestamp with time zone,
  constraint api_keys_hash_check CHECK ((length(hash) = 32)),
  constraint api_keys_hash_key UNIQUE (hash),
  constraint api_keys_pkey PRIMARY KEY (id),
  constraint api_keys_project_id_check CHECK (((length(project_id) >= 1) AND (length(project_id) <= 100))),
  constraint api_keys_revoked_says_by_whom CHECK (((revoked_at IS NULL) = (revoked_by_subject IS NULL))),
  constraint api_keys_tenant_id_check CHECK (((length(tenant_id) >= 1) AND (length(tenant_id) <= 100)))
);

create table carillon.attempts (
  schedule_id uuid not null,
  scheduled_for timestamp with time zone not null,
  attempt smallint not null,
  tenant_id text collate "C" not null,
  project_id text collate "C" not null,
  worker_id uuid not null,
  outcome carillon.attempt_outcome not null,
  started_at timestamp with time zone not null,
  completed_at timestamp with time zone not null,
  error json,
  result json,
  constraint attempts_attempt_check CHECK ((attempt > 0)),
  constraint attempts_pkey PRIMARY KEY (schedule_id, scheduled_for, attempt)
) partition by RANGE (scheduled_for);

create table carillon.audit_findings (
  audit_id uuid not null,
  ordinal integer not null,
  kind carillon.finding_kind not null,
  tenant_id text collate "C",
  project_id text collate "C",
  schedule_id uuid,
  scheduled_for timestamp with time zone,
  detail text not null,
  is_repaired boolean not null,
  constraint audit_findings_audit_id_fkey FOREIGN KEY (audit_id) REFERENCES carillon.audits(id) ON DELETE CASCADE,
  constraint audit_findings_pkey PRIMARY KEY (audit_id, ordinal)
);

create table carillon.audits (
  id uuid not null,
  audited_from timestamp with time zone not null,
  audited_to timestamp with time zone not null,
  started_at timestamp with time zone not null,
  completed_at timestamp with time zone not null,
  schedule_count bigint not null,
  slot_count bigint not null,
  unreadable_count bigint not null,
  truncated_count bigint not null,
  finding_count bigint not null,
  repaired_count bigint not null,
  constraint audits_pkey PRIMARY KEY (id)
);

create table carillon.execution_grants (
  id uuid not null,
  tenant_id text collate "C" not null,
  project_id text collate "C" not null,
  subject text not null,
  billing_account_id text,
  scopes text[] not null,
  expires_at timestamp with time zone,
  revoked_at timestamp with time zone,
  revoked_by_subject text,
  created_by_subject text not null,
  created_at timestamp with time zone not null,
  constraint execution_grants_pkey PRIMARY KEY (id),
  constraint execution_grants_project_id_check CHECK (((length(project_id) >= 1) AND (length(project_id) <= 100))),
  constraint execution_grants_scopes_check CHECK ((cardinality(scopes) > 0)),
  constraint execution_grants_tenant_id_check CHECK (((length(tenant_id) >= 1) AND (length(tenant_id) <= 100))),
  constraint execution_grants_tenant_id_project_id_id_key UNIQUE (tenant_id, project_id, id)
);

create table carillon.feed_entries (
  id bigint not null generated always as identity,
  xact_id xid8 not null default pg_current_xact_id(),
  tenant_id text collate "C" not null,
  project_id text collate "C" not null,
  kind carillon.feed_kind not null,
  schedule_ids uuid[] not null,
  slots timestamp with time zone[],
  changes text[] not null,
  noted_at timestamp with time zone not null default now(),
  constraint feed_entries_are_whole CHECK (((cardinality(schedule_ids) = cardinality(changes)) AND
CASE kind
    WHEN 'run'::carillon.feed_kind THEN (cardinality(slots) = cardinality(changes))
    ELSE (slots IS NULL)
END)),
  constraint feed_entries_pkey PRIMARY KEY (id)
);

create table carillon.idempotent_answers (
  tenant_id text collate "C" not null,
  project_id text collate "C" not null,
  key text collate "C" not null,
  request_hash bytea not null,
  schedule_id uuid not null,
  answer json not null,
  answered_at timestamp with time zone not null,
  constraint idempotent_answers_key_check CHECK (((length(key) >= 1) AND (length(key) <= 255))),
  constraint idempotent_answers_pkey PRIMARY KEY (tenant_id, project_id, key),
  constraint idempotent_answers_request_hash_check CHECK ((length(request_hash) = 32))
);

create table carillon.migrations (
  number integer not null,
  name text not null,
  checksum text not null,
  applied_at timestamp with time zone not null,
  constraint migrations_number_check CHECK ((number > 0)),
  constraint migrations_pkey PRIMARY KEY (number)
);

create table carillon.runs (
  schedule_id uuid not null,
  scheduled_for timestamp with time zone not null,
  id uuid not null,
  tenant_id text collate "C" not null,
  project_id text collate "C" not null,
  revision integer not null,
  trigger carillon.run_trigger not null,
  state carillon.run_state not null,
  reason carillon.run_reason,
  attempt_count smallint not null default 0,
  token integer not null default 0,
  worker_id uuid,
  begun_at timestamp with time zone not null,
  started_at timestamp with time zone,
  retry_at timestamp with time zone,
  cancel_requested_at timestamp with time zone,
  cancel_requested_by_subject text,
  completed_at timestamp with time zone,
  error json,
  constraint runs_pkey PRIMARY KEY (schedule_id, scheduled_for),
  constraint runs_retrying_says_when CHECK (((state = 'retrying'::carillon.run_state) = (retry_at IS NOT NULL))),
  constraint runs_running_has_worker CHECK (((state = 'running'::carillon.run_state) = (worker_id IS NOT NULL))),
  constraint runs_scheduled_for_check CHECK ((scheduled_for = date_trunc('milliseconds'::text, scheduled_for))),
  constraint runs_skipped_says_why CHECK (((state <> 'skipped'::carillon.run_state) OR (reason IS NOT NULL))),
  constraint runs_terminal_is_completed CHECK (((state = ANY (ARRAY['succeeded'::carillon.run_state, 'failed'::carillon.run_state, 'cancelled'::carillon.run_state, 'skipped'::carillon.run_state])) = (completed_at IS NOT NULL)))
) partition by RANGE (scheduled_for);

create table carillon.schedule_changes (
  id bigint not null generated always as identity,
  schedule_id uuid not null,
  tenant_id text collate "C" not null,
  project_id text collate "C" not null,
  change carillon.schedule_change not null,
  revision integer not null,
  next_slot_at timestamp with time zone,
  actor_subject text not null,
  reason text,
  changed_at timestamp with time zone not null,
  constraint schedule_changes_pkey PRIMARY KEY (id),
  constraint schedule_changes_tenant_id_project_id_schedule_id_fkey FOREIGN KEY (tenant_id, project_id, schedule_id) REFERENCES carillon.schedules(tenant_id, project_id, id)
);

create table carillon.schedule_revisions (
  schedule_id uuid not null,
  revision integer not null,
  tenant_id text collate "C" not null,
  project_id text collate "C" not null,
  name text not null,
  cadence_kind carillon.cadence_kind not null,
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
  changed_at timestamp with time zone not null,
  constraint schedule_revisions_name_check CHECK (((length(name) >= 1) AND (length(name) <= 200))),
  constraint schedule_revisions_one_cadence CHECK (((num_nonnulls(cadence_once, cadence_cron, cadence_rrule, cadence_interval, cadence_frequency) = 1) AND
CASE cadence_kind
    WHEN 'once'::carillon.cadence_kind THEN (cadence_once IS NOT NULL)
    WHEN 'cron'::carillon.cadence_kind THEN (cadence_cron IS NOT NULL)
    WHEN 'rrule'::carillon.cadence_kind THEN (cadence_rrule IS NOT NULL)
    WHEN 'interval'::carillon.cadence_kind THEN (cadence_interval IS NOT NULL)
    WHEN 'frequency'::carillon.cadence_kind THEN (cadence_frequency IS NOT NULL)
    ELSE NULL::boolean
END)),
  constraint schedule_revisions_pkey PRIMARY KEY (schedule_id, revision),
  constraint schedule_revisions_revision_check CHECK ((revision > 0)),
  constraint schedule_revisions_tenant_id_project_id_grant_id_fkey FOREIGN KEY (tenant_id, project_id, grant_id) REFERENCES carillon.execution_grants(tenant_id, project_id, id),
  constraint schedule_revisions_tenant_id_project_id_schedule_id_fkey FOREIGN KEY (tenant_id, project_id, schedule_id) REFERENCES carillon.schedules(tenant_id, project_id, id)
);

create table carillon.schedules (
  id uuid not null,
  tenant_id text collate "C" not null,
  project_id text collate "C" not null,
  owner_subject text not null,
  target_kind text collate "C" not null,
  lane text collate "C" not null generated always as (((target_kind || '.'::text) || ((hashtext(tenant_id) & 63))::text)) stored,
  state carillon.schedule_state not null,
  revision integer not null,
  grant_id uuid,
  next_slot_at timestamp with time zone,
  due_at timestamp with time zone,
  excluded_slots timestamp with time zone[],
  auto_pause_threshold smallint not null,
  consecutive_failures integer not null default 0,
  run_count bigint not null default 0,
  failure_count bigint not null default 0,
  created_by_subject text not null,
  created_at timestamp with time zone not null,
  updated_by_subject text,
  updated_at timestamp with time zone,
  paused_by_subject text,
  paused_reason text,
  paused_at timestamp with time zone,
  resumed_by_subject text,
  resumed_at timestamp with time zone,
  deleted_by_subject text,
  deleted_at timestamp with time zone,
  constraint schedules_active_has_next_slot CHECK (((state = 'active'::carillon.schedule_state) = (next_slot_at IS NOT NULL))),
  constraint schedules_auto_pause_threshold_check CHECK (((auto_pause_threshold = 0) OR ((auto_pause_threshold >= 3) AND (auto_pause_threshold <= 100)))),
  constraint schedules_consecutive_failures_check CHECK ((consecutive_failures >= 0)),
  constraint schedules_deleted_says_when CHECK (((state = 'deleted'::carillon.schedule_state) = (deleted_at IS NOT NULL))),
  constraint schedules_excluded_slots_check CHECK (((cardinality(excluded_slots) >= 1) AND (cardinality(excluded_slots) <= 100))),
  constraint schedules_next_slot_at_check CHECK ((next_slot_at = date_trunc('milliseconds'::text, next_slot_at))),
  constraint schedules_paused_says_why CHECK (((state = 'paused'::carillon.schedule_state) <= ((paused_at IS NOT NULL) AND (paused_reason IS NOT NULL)))),
  constraint schedules_pkey PRIMARY KEY (id),
  constraint schedules_project_id_check CHECK (((length(project_id) >= 1) AND (length(project_id) <= 100))),
  constraint schedules_revision_check CHECK ((revision > 0)),
  constraint schedules_slot_has_due CHECK ((((next_slot_at IS NULL) = (due_at IS NULL)) AND (due_at >= next_slot_at))),
  constraint schedules_target_kind_check CHECK ((target_kind ~ '^[a-z][a-z0-9_]{0,30}$'::text)),
  constraint schedules_tenant_id_check CHECK (((length(tenant_id) >= 1) AND (length(tenant_id) <= 100))),
  constraint schedules_tenant_id_project_id_grant_id_fkey FOREIGN KEY (tenant_id, project_id, grant_id) REFERENCES carillon.execution_grants(tenant_id, project_id, id),
  constraint schedules_tenant_id_project_id_id_key UNIQUE (tenant_id, project_id, id)
) with (autovacuum_vacuum_cost_delay=0, autovacuum_vacuum_scale_factor=0.02, fillfactor=60);

create table carillon.workers (
  id uuid not null,
  name text not null,
  target_kinds text[] not null,
  started_at timestamp with time zone not null,
  heartbeat_at timestamp with time zone not null,
  lease_expires_at timestamp with time zone not null,
  engine_worker_ids text[] not null default '{}'::text[],
  version text,
  tzdata_version text,
  constraint workers_pkey PRIMARY KEY (id)
) with (fillfactor=50);

CREATE INDEX api_keys_project_idx ON carillon.api_keys USING btree (tenant_id, project_id, id);

CREATE INDEX audit_findings_project_idx ON carillon.audit_findings USING btree (tenant_id, project_id, audit_id);

CREATE INDEX feed_entries_age_idx ON carillon.feed_entries USING brin (noted_at);

CREATE INDEX feed_entries_project_idx ON carillon.feed_entries USING btree (tenant_id, project_id, xact_id, id);

CREATE INDEX idempotent_answers_age_idx ON carillon.idempotent_answers USING btree (answered_at);

CREATE INDEX runs_id_idx ON ONLY carillon.runs USING btree (id);

CREATE INDEX runs_open_idx ON ONLY carillon.runs USING btree (schedule_id, scheduled_for) WHERE (state = ANY (ARRAY['pending'::carillon.run_state, 'running'::carillon.run_state, 'retrying'::carillon.run_state]));

CREATE INDEX schedule_changes_schedule_idx ON carillon.schedule_changes USING btree (schedule_id, id);

CREATE INDEX schedules_agenda_idx ON carillon.schedules USING btree (lane, due_at, id) WHERE (state = 'active'::carillon.schedule_state);

CREATE INDEX schedules_deleted_idx ON carillon.schedules USING btree (deleted_at) WHERE (state = 'deleted'::carillon.schedule_state);

CREATE OR REPLACE FUNCTION carillon.note_runs()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  insert into carillon.feed_entries (tenant_id, project_id, kind, schedule_ids, slots, changes)
  select changed.tenant_id, changed.project_id, 'run', array_agg(changed.schedule_id), array_agg(changed.scheduled_for),
    array_agg(changed.state::text)
  from changed
  group by changed.tenant_id, changed.project_id;
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION carillon.note_schedules()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  insert into carillon.feed_entries (tenant_id, project_id, kind, schedule_ids, changes)
  select changed.tenant_id, changed.project_id, 'schedule', array_agg(changed.schedule_id order by changed.id),
    array_agg(changed.change::text order by changed.id)
  from changed
  group by changed.tenant_id, changed.project_id;
  return null;
end
$function$;

CREATE TRIGGER runs_inserted AFTER INSERT ON carillon.runs REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION carillon.note_runs();

CREATE TRIGGER runs_updated AFTER UPDATE ON carillon.runs REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION carillon.note_runs();

CREATE TRIGGER schedule_changes_inserted AFTER INSERT ON carillon.schedule_changes REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION carillon.note_schedules();
