-- The schema carillon after all migrations, partitions aside. Generated: `npm run schema` writes it anew, and a test
-- compares. To read and to review, not to run: what changes the schema are the migrations.

create type carillon.attempt_outcome as enum ('succeeded', 'failed', 'cancelled', 'malformed', 'lost');

create type carillon.cadence_kind as enum ('once', 'cron', 'rrule', 'interval', 'frequency');

create type carillon.feed_kind as enum ('run', 'schedule');

create type carillon.finding_kind as enum ('slot_lost', 'slot_unknown', 'schedule_past_due', 'run_without_lease', 'run_stuck', 'attempt_missing', 'revision_missing', 'run_contradicted', 'count_wrong');

create type carillon.role as enum ('member', 'admin');

create type carillon.run_reason as enum ('overlap', 'missed', 'paused', 'grant_expired', 'grant_revoked', 'grant_scope', 'access_lost', 'excluded', 'superseded');

create type carillon.run_state as enum ('pending', 'running', 'retrying', 'succeeded', 'failed', 'cancelled', 'skipped');

create type carillon.run_trigger as enum ('schedule', 'manual');

create type carillon.run_wait as enum ('turn', 'worker', 'retry', 'deferred', 'completion');

create type carillon.schedule_change as enum ('created', 'edited', 'paused', 'resumed', 'completed', 'deleted', 'slot_skipped', 'slot_restored', 'grant_expiring', 'grant_revoked', 'grant_renewed');

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
) enable row level security force row level security;

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
) partition by RANGE (scheduled_for) enable row level security force row level security;

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
  found_at timestamp with time zone not null,
  constraint audit_findings_audit_id_fkey FOREIGN KEY (audit_id) REFERENCES carillon.audits(id) ON DELETE CASCADE,
  constraint audit_findings_pkey PRIMARY KEY (audit_id, ordinal)
) enable row level security force row level security;

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
  is_whole boolean not null,
  lost_count bigint not null default 0,
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
  schedule_id uuid,
  warned_at timestamp with time zone,
  constraint execution_grants_pkey PRIMARY KEY (id),
  constraint execution_grants_project_id_check CHECK (((length(project_id) >= 1) AND (length(project_id) <= 100))),
  constraint execution_grants_scopes_check CHECK ((cardinality(scopes) > 0)),
  constraint execution_grants_tenant_id_check CHECK (((length(tenant_id) >= 1) AND (length(tenant_id) <= 100))),
  constraint execution_grants_tenant_id_project_id_id_key UNIQUE (tenant_id, project_id, id)
) enable row level security force row level security;

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
) enable row level security force row level security;

create table carillon.feed_floor (
  is_only boolean not null default true,
  forgotten_id bigint not null,
  constraint feed_floor_is_only_check CHECK (is_only),
  constraint feed_floor_pkey PRIMARY KEY (is_only)
);

create table carillon.idempotent_answers (
  tenant_id text collate "C" not null,
  project_id text collate "C" not null,
  key text collate "C" not null,
  request_hash bytea not null,
  schedule_id uuid not null,
  answer json not null,
  answered_at timestamp with time zone not null,
  subject text collate "C" not null,
  constraint idempotent_answers_key_check CHECK (((length(key) >= 1) AND (length(key) <= 255))),
  constraint idempotent_answers_pkey PRIMARY KEY (tenant_id, project_id, subject, key),
  constraint idempotent_answers_request_hash_check CHECK ((length(request_hash) = 32))
) enable row level security force row level security;

create table carillon.live_schedules (
  tenant_id text collate "C" not null,
  project_id text collate "C" not null,
  owner_subject text collate "C" not null,
  schedule_id uuid not null,
  constraint live_schedules_pkey PRIMARY KEY (tenant_id, project_id, owner_subject, schedule_id)
) enable row level security force row level security;

create table carillon.members (
  tenant_id text collate "C" not null,
  project_id text collate "C" not null,
  subject text collate "C" not null,
  role carillon.role not null,
  added_by_subject text not null,
  added_at timestamp with time zone not null,
  removed_by_subject text,
  removed_at timestamp with time zone,
  constraint members_pkey PRIMARY KEY (tenant_id, project_id, subject),
  constraint members_project_id_check CHECK (((length(project_id) >= 1) AND (length(project_id) <= 100))),
  constraint members_removed_says_by_whom CHECK (((removed_at IS NULL) = (removed_by_subject IS NULL))),
  constraint members_tenant_id_check CHECK (((length(tenant_id) >= 1) AND (length(tenant_id) <= 100)))
) enable row level security force row level security;

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
  cancel_requested_at timestamp with time zone,
  cancel_requested_by_subject text,
  completed_at timestamp with time zone,
  error json,
  due_at timestamp with time zone,
  waits_for carillon.run_wait,
  lane text collate "C",
  settles_locked boolean not null default false,
  constraint runs_pkey PRIMARY KEY (schedule_id, scheduled_for),
  constraint runs_running_has_worker CHECK (((state = 'running'::carillon.run_state) = (worker_id IS NOT NULL))),
  constraint runs_scheduled_for_check CHECK ((scheduled_for = date_trunc('milliseconds'::text, scheduled_for))),
  constraint runs_skipped_says_why CHECK (((state <> 'skipped'::carillon.run_state) OR (reason IS NOT NULL))),
  constraint runs_terminal_is_completed CHECK (((state = ANY (ARRAY['succeeded'::carillon.run_state, 'failed'::carillon.run_state, 'cancelled'::carillon.run_state, 'skipped'::carillon.run_state])) = (completed_at IS NOT NULL))),
  constraint runs_waiting_says_when CHECK ((((due_at IS NOT NULL) = ((completed_at IS NULL) AND (state <> 'running'::carillon.run_state))) AND ((due_at IS NULL) = (waits_for IS NULL)) AND ((due_at IS NULL) = (lane IS NULL)) AND ((waits_for = 'turn'::carillon.run_wait) = (due_at = 'infinity'::timestamp with time zone)))),
  constraint runs_waits_as_its_state_says CHECK (
CASE state
    WHEN 'pending'::carillon.run_state THEN ((waits_for = ANY (ARRAY['turn'::carillon.run_wait, 'worker'::carillon.run_wait, 'deferred'::carillon.run_wait])) AND (attempt_count = 0))
    WHEN 'retrying'::carillon.run_state THEN ((waits_for = ANY (ARRAY['worker'::carillon.run_wait, 'retry'::carillon.run_wait, 'deferred'::carillon.run_wait])) AND (attempt_count > 0))
    ELSE (waits_for IS NULL)
END)
) partition by RANGE (scheduled_for) enable row level security force row level security;

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
) enable row level security force row level security;

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
  grant_id uuid not null,
  changed_by_subject text not null,
  changed_at timestamp with time zone not null,
  required_scope text not null,
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
) with (autovacuum_vacuum_insert_scale_factor=0.05) enable row level security force row level security;

create table carillon.schedules (
  id uuid not null,
  tenant_id text collate "C" not null,
  project_id text collate "C" not null,
  owner_subject text not null,
  target_kind text collate "C" not null,
  lane text collate "C" not null,
  state carillon.schedule_state not null,
  revision integer not null,
  grant_id uuid not null,
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
  constraint schedules_not_of_the_platform CHECK (((tenant_id <> '_platform'::text) AND (project_id <> '_platform'::text))),
  constraint schedules_paused_says_why CHECK (((state = 'paused'::carillon.schedule_state) <= ((paused_at IS NOT NULL) AND (paused_reason IS NOT NULL)))),
  constraint schedules_pkey PRIMARY KEY (id),
  constraint schedules_project_id_check CHECK (((length(project_id) >= 1) AND (length(project_id) <= 100))),
  constraint schedules_revision_check CHECK ((revision > 0)),
  constraint schedules_slot_has_due CHECK ((((next_slot_at IS NULL) = (due_at IS NULL)) AND (due_at >= next_slot_at))),
  constraint schedules_tenant_id_check CHECK (((length(tenant_id) >= 1) AND (length(tenant_id) <= 100))),
  constraint schedules_tenant_id_project_id_id_key UNIQUE (tenant_id, project_id, id)
) with (autovacuum_vacuum_cost_delay=0, autovacuum_vacuum_scale_factor=0.02, fillfactor=60) enable row level security force row level security;

create table carillon.secrets (
  tenant_id text collate "C" not null,
  project_id text collate "C" not null,
  name text collate "C" not null,
  version integer not null,
  key_id text not null,
  nonce bytea not null,
  ciphertext bytea not null,
  created_by_subject text not null,
  created_at timestamp with time zone not null,
  updated_by_subject text not null,
  updated_at timestamp with time zone not null,
  constraint secrets_ciphertext_check CHECK ((length(ciphertext) >= 16)),
  constraint secrets_name_check CHECK (((length(name) >= 1) AND (length(name) <= 100))),
  constraint secrets_nonce_check CHECK ((length(nonce) = 12)),
  constraint secrets_pkey PRIMARY KEY (tenant_id, project_id, name),
  constraint secrets_project_id_check CHECK (((length(project_id) >= 1) AND (length(project_id) <= 100))),
  constraint secrets_tenant_id_check CHECK (((length(tenant_id) >= 1) AND (length(tenant_id) <= 100))),
  constraint secrets_version_check CHECK ((version > 0))
) enable row level security force row level security;

create table carillon.service_turns (
  name text collate "C" not null,
  next_at timestamp with time zone not null,
  requested_at timestamp with time zone,
  worker_id uuid,
  until timestamp with time zone,
  cursor json,
  reached_at timestamp with time zone,
  constraint service_turns_holder_has_limit CHECK (((worker_id IS NULL) = (until IS NULL))),
  constraint service_turns_name_check CHECK (((length(name) >= 1) AND (length(name) <= 100))),
  constraint service_turns_pkey PRIMARY KEY (name)
) with (fillfactor=50);

create table carillon.slot_backlogs (
  schedule_id uuid not null,
  revision integer not null,
  until timestamp with time zone not null,
  tenant_id text collate "C" not null,
  project_id text collate "C" not null,
  next_slot_at timestamp with time zone not null,
  reason carillon.run_reason not null,
  excluded_slots timestamp with time zone[],
  made_at timestamp with time zone not null,
  constraint slot_backlogs_excluded_slots_check CHECK (((cardinality(excluded_slots) >= 1) AND (cardinality(excluded_slots) <= 100))),
  constraint slot_backlogs_next_slot_at_check CHECK ((next_slot_at = date_trunc('milliseconds'::text, next_slot_at))),
  constraint slot_backlogs_not_empty CHECK ((next_slot_at <= until)),
  constraint slot_backlogs_pkey PRIMARY KEY (schedule_id, revision, until),
  constraint slot_backlogs_tenant_id_project_id_schedule_id_fkey FOREIGN KEY (tenant_id, project_id, schedule_id) REFERENCES carillon.schedules(tenant_id, project_id, id)
) enable row level security force row level security;

create table carillon.tenants (
  tenant_id text collate "C" not null,
  max_schedules_per_project integer,
  max_schedules_per_user integer,
  minimum_seconds integer,
  requests_per_minute integer,
  allowed_hosts text[],
  updated_by_subject text not null,
  updated_at timestamp with time zone not null,
  constraint tenants_max_schedules_per_project_check CHECK ((max_schedules_per_project > 0)),
  constraint tenants_max_schedules_per_user_check CHECK ((max_schedules_per_user > 0)),
  constraint tenants_minimum_seconds_check CHECK ((minimum_seconds > 0)),
  constraint tenants_pkey PRIMARY KEY (tenant_id),
  constraint tenants_requests_per_minute_check CHECK ((requests_per_minute > 0)),
  constraint tenants_tenant_id_check CHECK ((((length(tenant_id) >= 1) AND (length(tenant_id) <= 100)) AND (tenant_id <> '_platform'::text)))
) enable row level security force row level security;

create table carillon.workers (
  id uuid not null,
  name text not null,
  target_kinds text[] not null,
  started_at timestamp with time zone not null,
  heartbeat_at timestamp with time zone not null,
  lease_expires_at timestamp with time zone not null,
  version text,
  tzdata_version text,
  failing json,
  full_at timestamp with time zone,
  constraint workers_pkey PRIMARY KEY (id)
) with (fillfactor=50);

CREATE INDEX api_keys_project_idx ON carillon.api_keys USING btree (tenant_id, project_id, id);

CREATE INDEX audit_findings_project_idx ON carillon.audit_findings USING btree (tenant_id, project_id, audit_id);

CREATE INDEX audit_findings_schedule_idx ON carillon.audit_findings USING btree (schedule_id, scheduled_for);

CREATE INDEX audits_repairs_idx ON carillon.audits USING btree (completed_at) WHERE ((repaired_count > 0) AND (NOT is_whole));

CREATE INDEX execution_grants_expiry_idx ON carillon.execution_grants USING btree (expires_at) WHERE ((expires_at IS NOT NULL) AND (revoked_at IS NULL) AND (warned_at IS NULL));

CREATE INDEX execution_grants_schedule_idx ON carillon.execution_grants USING btree (schedule_id) WHERE (schedule_id IS NOT NULL);

CREATE INDEX feed_entries_age_idx ON carillon.feed_entries USING brin (noted_at);

CREATE INDEX feed_entries_project_idx ON carillon.feed_entries USING btree (tenant_id, project_id, xact_id, id);

CREATE INDEX idempotent_answers_age_idx ON carillon.idempotent_answers USING btree (answered_at);

CREATE INDEX runs_cancel_idx ON ONLY carillon.runs USING btree (worker_id) WHERE ((cancel_requested_at IS NOT NULL) AND (completed_at IS NULL));

CREATE INDEX runs_id_idx ON ONLY carillon.runs USING btree (id);

CREATE INDEX runs_open_idx ON ONLY carillon.runs USING btree (schedule_id, scheduled_for, worker_id) WHERE (completed_at IS NULL);

CREATE INDEX runs_waiting_idx ON ONLY carillon.runs USING btree (lane, due_at, schedule_id, scheduled_for) WHERE (due_at IS NOT NULL);

CREATE INDEX schedule_changes_schedule_idx ON carillon.schedule_changes USING btree (schedule_id, id);

CREATE INDEX schedule_revisions_grant_idx ON carillon.schedule_revisions USING btree (grant_id);

CREATE INDEX schedule_revisions_name_idx ON carillon.schedule_revisions USING btree (tenant_id, project_id, schedule_id, revision) INCLUDE (name);

CREATE INDEX schedules_agenda_idx ON carillon.schedules USING btree (lane, due_at, id) WHERE (state = 'active'::carillon.schedule_state);

CREATE INDEX schedules_deleted_idx ON carillon.schedules USING btree (deleted_at) WHERE (state = 'deleted'::carillon.schedule_state);

CREATE OR REPLACE FUNCTION carillon.assign_lane()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  if new.target_kind !~ '^[a-z][a-z0-9_]{0,30}$' then
    raise exception 'expected a kind of target such as http, got "%"', new.target_kind using
      errcode = 'check_violation', constraint = 'schedules_target_kind_check', table = 'schedules', schema = 'carillon';
  end if;
  new.lane := carillon.lane_of(new.target_kind, new.tenant_id);
  return new;
end
$function$;

CREATE OR REPLACE FUNCTION carillon.count_live(tenant text, project text, owner text, most integer)
 RETURNS bigint
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  if owner is null then
    return (
      select count(*)
      from (
        select
        from carillon.live_schedules
        where tenant_id = tenant and project_id = project
        limit most
      ) as live
    );
  end if;
  return (
    select count(*)
    from (
      select
      from carillon.live_schedules
      where tenant_id = tenant and project_id = project and owner_subject = owner
      limit most
    ) as live
  );
end
$function$;

CREATE OR REPLACE FUNCTION carillon.create_month(parent text, month date)
 RETURNS boolean
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  child text := parent || to_char(month, '_YYYY_MM');
  -- Of runs: rewritten two or three times soon after they were written, and room for that beside them keeps their indexes
  -- untouched. Of attempts: written once; vacuumed early and often, they are frozen while still in memory.
  storage text := case parent
    when 'runs' then 'fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0'
    when 'attempts' then 'autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0'
  end;
begin
  if storage is null or month <> date_trunc('month', month)::date then
    raise exception 'expected a month of runs or attempts, got % of %', month, parent;
  end if;
  perform carillon.lock_months();
  if to_regclass(format('carillon.%I', child)) is not null then
    return false;
  end if;
  -- A plain table that is attached. `create table … partition of` would lock the parent against every reader and writer;
  -- attaching only keeps other changes of the table away. `like` brings the checks and indexes that attaching expects.
  execute format('create table carillon.%I (like carillon.%I including all) with (%s)', child, parent, storage);
  perform carillon.wall_in(child);
  execute format(
    'alter table carillon.%I attach partition carillon.%I for values from (%L) to (%L)', parent, child,
    to_char(month, 'YYYY-MM-DD"T00:00:00Z"'), to_char(month + interval '1 month', 'YYYY-MM-DD"T00:00:00Z"')
  );
  return true;
end
$function$;

CREATE OR REPLACE FUNCTION carillon.drop_month(month date)
 RETURNS boolean
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  suffix text := to_char(month, '_YYYY_MM');
  runs regclass := to_regclass(format('carillon.%I', 'runs' || suffix));
  attempts regclass := to_regclass(format('carillon.%I', 'attempts' || suffix));
  has_open boolean := false;
begin
  perform carillon.lock_months();
  if runs is not null then
    lock table only carillon.runs in access exclusive mode;
    execute format('lock table %s in access exclusive mode', runs);
    execute format('select exists (select from %s where completed_at is null)', runs) into has_open;
    if has_open then
      return false;
    end if;
    execute format('drop table %s', runs);
  end if;
  if attempts is not null then
    execute format('drop table %s', attempts);
  end if;
  return runs is not null or attempts is not null;
end
$function$;

CREATE OR REPLACE FUNCTION carillon.forget_live()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  delete from carillon.live_schedules as live
  using gone
  where live.tenant_id = gone.tenant_id and live.project_id = gone.project_id
    and live.owner_subject = gone.owner_subject collate "C" and live.schedule_id = gone.id;
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION carillon.lane_of(kind text, tenant text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN ((kind || '.'::text) || (hashtext(tenant) & 63));

CREATE OR REPLACE FUNCTION carillon.list_unowned_findings(most integer)
 RETURNS TABLE(audit_id uuid, found_at timestamp with time zone, seen_at timestamp with time zone, kind carillon.finding_kind, schedule_id uuid, scheduled_for timestamp with time zone, detail text, is_repaired boolean)
 LANGUAGE sql
 STABLE SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
  select findings.audit_id, findings.found_at, audits.completed_at, findings.kind, findings.schedule_id, findings.scheduled_for,
    findings.detail, findings.is_repaired
  from carillon.audit_findings as findings
  join carillon.audits on audits.id = findings.audit_id
  where findings.tenant_id is null
  order by findings.audit_id desc, findings.ordinal
  limit most
$function$;

CREATE OR REPLACE FUNCTION carillon.lock_months()
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  perform set_config('lock_timeout', '1000', true);
  perform pg_advisory_xact_lock(211947792, 2);
end
$function$;

CREATE OR REPLACE FUNCTION carillon.note_life()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  if new.state in ('active', 'paused') then
    insert into carillon.live_schedules (tenant_id, project_id, owner_subject, schedule_id)
    values (new.tenant_id, new.project_id, new.owner_subject, new.id);
  else
    delete from carillon.live_schedules as live
    where live.tenant_id = old.tenant_id and live.project_id = old.project_id and live.owner_subject = old.owner_subject
      and live.schedule_id = old.id;
  end if;
  return null;
end
$function$;

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

CREATE OR REPLACE FUNCTION carillon.request_audit(asked_at timestamp with time zone)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  insert into carillon.service_turns as turns (name, next_at, requested_at)
  values ('audit', asked_at, asked_at)
  on conflict (name) do update
  set next_at = least(turns.next_at, asked_at),
    requested_at = greatest(turns.requested_at, asked_at),
    -- Between slices: the worker that has the turn looks every two seconds, unless it died.
    until = case
      when turns.next_at > asked_at and turns.until > asked_at + interval '10 seconds' then asked_at + interval '10 seconds'
      else turns.until
    end;
end
$function$;

CREATE OR REPLACE FUNCTION carillon.require_place(tenant text, project text, owner text, added integer)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  in_project integer;
  of_user integer;
begin
  select
    coalesce(
      tenants.max_schedules_per_project, nullif(current_setting('carillon.max_schedules_per_project', true), '')::integer
    ),
    case when owner like 'user:%' then coalesce(
      tenants.max_schedules_per_user, nullif(current_setting('carillon.max_schedules_per_user', true), '')::integer
    ) end
  into in_project, of_user
  from (select) as one
  left join carillon.tenants on tenants.tenant_id = tenant;
  perform carillon.require_room(tenant, project, null, in_project, added);
  perform carillon.require_room(tenant, project, owner, of_user, added);
end
$function$;

CREATE OR REPLACE FUNCTION carillon.require_places()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  insert into carillon.live_schedules (tenant_id, project_id, owner_subject, schedule_id)
  select added.tenant_id, added.project_id, added.owner_subject, added.id
  from added
  where added.state in ('active', 'paused');
  perform carillon.require_place(added.tenant_id, added.project_id, added.owner_subject, count(*)::integer)
  from added
  where added.state in ('active', 'paused')
  group by added.tenant_id, added.project_id, added.owner_subject;
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION carillon.require_room(tenant text, project text, owner text, most integer, added integer)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  space constant integer := 211947794;
  lock constant integer := hashtext(concat_ws('/', tenant, project, owner));
  is_alone boolean := added > 1 or current_setting('carillon.counts_alone', true) = 'on';
  live bigint;
begin
  if most is null then
    return;
  end if;
  if is_alone then
    perform pg_advisory_xact_lock(space, lock);
  else
    perform pg_advisory_xact_lock_shared(space, lock);
  end if;
  loop
    -- Not before the lock was had: a statement sees what was committed when it began.
    live := carillon.count_live(tenant, project, owner, most + 1);
    if live > most then
      raise exception 'expected at most % schedules', most using
        errcode = 'CA001',
        detail = json_build_object('limit', most, 'scope', case when owner is null then 'project' else 'user' end);
    end if;
    exit when is_alone or live <= most - current_setting('max_connections')::integer;
    if not pg_try_advisory_xact_lock(space, lock) then
      raise exception 'others are adding schedules as well' using errcode = 'CA002';
    end if;
    is_alone := true;
  end loop;
end
$function$;

CREATE OR REPLACE FUNCTION carillon.wall_in(relation text)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  execute format('alter table carillon.%I enable row level security', relation);
  execute format('alter table carillon.%I force row level security', relation);
  execute format(
    'create policy tenant_wall on carillon.%I to carillon_api using (%2$s) with check (%2$s)', relation,
    $policy$tenant_id = nullif(current_setting('carillon.tenant_id', true), '')
      and project_id = nullif(current_setting('carillon.project_id', true), '')$policy$
  );
  execute format('create policy pipeline on carillon.%I to carillon_worker using (true) with check (true)', relation);
end
$function$;

CREATE TRIGGER runs_inserted AFTER INSERT ON carillon.runs REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION carillon.note_runs();

CREATE TRIGGER runs_updated AFTER UPDATE ON carillon.runs REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION carillon.note_runs();

CREATE TRIGGER schedule_changes_inserted AFTER INSERT ON carillon.schedule_changes REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION carillon.note_schedules();

CREATE TRIGGER schedules_inserted AFTER INSERT ON carillon.schedules REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION carillon.require_places();

CREATE TRIGGER schedules_lane BEFORE INSERT OR UPDATE OF target_kind ON carillon.schedules FOR EACH ROW EXECUTE FUNCTION carillon.assign_lane();

CREATE TRIGGER schedules_lived AFTER UPDATE OF state ON carillon.schedules FOR EACH ROW WHEN (((old.state = ANY (ARRAY['active'::carillon.schedule_state, 'paused'::carillon.schedule_state])) <> (new.state = ANY (ARRAY['active'::carillon.schedule_state, 'paused'::carillon.schedule_state])))) EXECUTE FUNCTION carillon.note_life();

CREATE TRIGGER schedules_removed AFTER DELETE ON carillon.schedules REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION carillon.forget_live();

create policy pipeline on carillon.api_keys as permissive for all to carillon_worker using (true) with check (true);

create policy shown_key on carillon.api_keys as permissive for select to carillon_api using ((hash = decode(NULLIF(current_setting('carillon.key_hash'::text, true), ''::text), 'hex'::text)));

create policy tenant_wall on carillon.api_keys as permissive for all to carillon_api using (((tenant_id = NULLIF(current_setting('carillon.tenant_id'::text, true), ''::text)) AND (project_id = NULLIF(current_setting('carillon.project_id'::text, true), ''::text)))) with check (((tenant_id = NULLIF(current_setting('carillon.tenant_id'::text, true), ''::text)) AND (project_id = NULLIF(current_setting('carillon.project_id'::text, true), ''::text))));

create policy pipeline on carillon.attempts as permissive for all to carillon_worker using (true) with check (true);

create policy tenant_wall on carillon.attempts as permissive for all to carillon_api using (((tenant_id = NULLIF(current_setting('carillon.tenant_id'::text, true), ''::text)) AND (project_id = NULLIF(current_setting('carillon.project_id'::text, true), ''::text)))) with check (((tenant_id = NULLIF(current_setting('carillon.tenant_id'::text, true), ''::text)) AND (project_id = NULLIF(current_setting('carillon.project_id'::text, true), ''::text))));

create policy pipeline on carillon.audit_findings as permissive for all to carillon_worker using (true) with check (true);

create policy tenant_wall on carillon.audit_findings as permissive for all to carillon_api using (((tenant_id = NULLIF(current_setting('carillon.tenant_id'::text, true), ''::text)) AND (project_id = NULLIF(current_setting('carillon.project_id'::text, true), ''::text)))) with check (((tenant_id = NULLIF(current_setting('carillon.tenant_id'::text, true), ''::text)) AND (project_id = NULLIF(current_setting('carillon.project_id'::text, true), ''::text))));

create policy pipeline on carillon.execution_grants as permissive for all to carillon_worker using (true) with check (true);

create policy tenant_wall on carillon.execution_grants as permissive for all to carillon_api using (((tenant_id = NULLIF(current_setting('carillon.tenant_id'::text, true), ''::text)) AND (project_id = NULLIF(current_setting('carillon.project_id'::text, true), ''::text)))) with check (((tenant_id = NULLIF(current_setting('carillon.tenant_id'::text, true), ''::text)) AND (project_id = NULLIF(current_setting('carillon.project_id'::text, true), ''::text))));

create policy pipeline on carillon.feed_entries as permissive for all to carillon_worker using (true) with check (true);

create policy tenant_wall on carillon.feed_entries as permissive for all to carillon_api using (((tenant_id = NULLIF(current_setting('carillon.tenant_id'::text, true), ''::text)) AND (project_id = NULLIF(current_setting('carillon.project_id'::text, true), ''::text)))) with check (((tenant_id = NULLIF(current_setting('carillon.tenant_id'::text, true), ''::text)) AND (project_id = NULLIF(current_setting('carillon.project_id'::text, true), ''::text))));

create policy pipeline on carillon.idempotent_answers as permissive for all to carillon_worker using (true) with check (true);

create policy tenant_wall on carillon.idempotent_answers as permissive for all to carillon_api using (((tenant_id = NULLIF(current_setting('carillon.tenant_id'::text, true), ''::text)) AND (project_id = NULLIF(current_setting('carillon.project_id'::text, true), ''::text)))) with check (((tenant_id = NULLIF(current_setting('carillon.tenant_id'::text, true), ''::text)) AND (project_id = NULLIF(current_setting('carillon.project_id'::text, true), ''::text))));

create policy pipeline on carillon.live_schedules as permissive for all to carillon_worker using (true) with check (true);

create policy tenant_wall on carillon.live_schedules as permissive for all to carillon_api using (((tenant_id = NULLIF(current_setting('carillon.tenant_id'::text, true), ''::text)) AND (project_id = NULLIF(current_setting('carillon.project_id'::text, true), ''::text)))) with check (((tenant_id = NULLIF(current_setting('carillon.tenant_id'::text, true), ''::text)) AND (project_id = NULLIF(current_setting('carillon.project_id'::text, true), ''::text))));

create policy pipeline on carillon.members as permissive for all to carillon_worker using (true) with check (true);

create policy tenant_wall on carillon.members as permissive for all to carillon_api using (((tenant_id = NULLIF(current_setting('carillon.tenant_id'::text, true), ''::text)) AND (project_id = NULLIF(current_setting('carillon.project_id'::text, true), ''::text)))) with check (((tenant_id = NULLIF(current_setting('carillon.tenant_id'::text, true), ''::text)) AND (project_id = NULLIF(current_setting('carillon.project_id'::text, true), ''::text))));

create policy pipeline on carillon.runs as permissive for all to carillon_worker using (true) with check (true);

create policy tenant_wall on carillon.runs as permissive for all to carillon_api using (((tenant_id = NULLIF(current_setting('carillon.tenant_id'::text, true), ''::text)) AND (project_id = NULLIF(current_setting('carillon.project_id'::text, true), ''::text)))) with check (((tenant_id = NULLIF(current_setting('carillon.tenant_id'::text, true), ''::text)) AND (project_id = NULLIF(current_setting('carillon.project_id'::text, true), ''::text))));

create policy pipeline on carillon.schedule_changes as permissive for all to carillon_worker using (true) with check (true);

create policy tenant_wall on carillon.schedule_changes as permissive for all to carillon_api using (((tenant_id = NULLIF(current_setting('carillon.tenant_id'::text, true), ''::text)) AND (project_id = NULLIF(current_setting('carillon.project_id'::text, true), ''::text)))) with check (((tenant_id = NULLIF(current_setting('carillon.tenant_id'::text, true), ''::text)) AND (project_id = NULLIF(current_setting('carillon.project_id'::text, true), ''::text))));

create policy pipeline on carillon.schedule_revisions as permissive for all to carillon_worker using (true) with check (true);

create policy tenant_wall on carillon.schedule_revisions as permissive for all to carillon_api using (((tenant_id = NULLIF(current_setting('carillon.tenant_id'::text, true), ''::text)) AND (project_id = NULLIF(current_setting('carillon.project_id'::text, true), ''::text)))) with check (((tenant_id = NULLIF(current_setting('carillon.tenant_id'::text, true), ''::text)) AND (project_id = NULLIF(current_setting('carillon.project_id'::text, true), ''::text))));

create policy pipeline on carillon.schedules as permissive for all to carillon_worker using (true) with check (true);

create policy tenant_wall on carillon.schedules as permissive for all to carillon_api using (((tenant_id = NULLIF(current_setting('carillon.tenant_id'::text, true), ''::text)) AND (project_id = NULLIF(current_setting('carillon.project_id'::text, true), ''::text)))) with check (((tenant_id = NULLIF(current_setting('carillon.tenant_id'::text, true), ''::text)) AND (project_id = NULLIF(current_setting('carillon.project_id'::text, true), ''::text))));

create policy pipeline on carillon.secrets as permissive for all to carillon_worker using (true) with check (true);

create policy tenant_wall on carillon.secrets as permissive for all to carillon_api using (((tenant_id = NULLIF(current_setting('carillon.tenant_id'::text, true), ''::text)) AND (project_id = NULLIF(current_setting('carillon.project_id'::text, true), ''::text)))) with check (((tenant_id = NULLIF(current_setting('carillon.tenant_id'::text, true), ''::text)) AND (project_id = NULLIF(current_setting('carillon.project_id'::text, true), ''::text))));

create policy pipeline on carillon.slot_backlogs as permissive for all to carillon_worker using (true) with check (true);

create policy tenant_wall on carillon.slot_backlogs as permissive for all to carillon_api using (((tenant_id = NULLIF(current_setting('carillon.tenant_id'::text, true), ''::text)) AND (project_id = NULLIF(current_setting('carillon.project_id'::text, true), ''::text)))) with check (((tenant_id = NULLIF(current_setting('carillon.tenant_id'::text, true), ''::text)) AND (project_id = NULLIF(current_setting('carillon.project_id'::text, true), ''::text))));

create policy pipeline on carillon.tenants as permissive for all to carillon_worker using (true) with check (true);

create policy tenant_wall on carillon.tenants as permissive for all to carillon_api using ((tenant_id = NULLIF(current_setting('carillon.tenant_id'::text, true), ''::text))) with check ((tenant_id = NULLIF(current_setting('carillon.tenant_id'::text, true), ''::text)));

grant delete, insert, select, update (revoked_by_subject, revoked_at) on carillon.api_keys to carillon_api;

grant delete, select on carillon.attempts to carillon_api;

grant insert, select on carillon.attempts to carillon_worker;

grant select on carillon.audit_findings to carillon_api;

grant delete, insert, select on carillon.audit_findings to carillon_worker;

grant select on carillon.audits to carillon_api;

grant delete, insert, select on carillon.audits to carillon_worker;

grant delete, insert, select, update (expires_at, revoked_at, revoked_by_subject, warned_at) on carillon.execution_grants to carillon_api;

grant delete, select, update (warned_at) on carillon.execution_grants to carillon_worker;

grant insert, select on carillon.feed_entries to carillon_api;

grant delete, insert, select on carillon.feed_entries to carillon_worker;

grant select on carillon.feed_entries_id_seq to carillon_api;

grant select on carillon.feed_floor to carillon_api;

grant select, update on carillon.feed_floor to carillon_worker;

grant delete, insert, select, update (request_hash, schedule_id, answer, answered_at) on carillon.idempotent_answers to carillon_api;

grant delete, select, update (answered_at) on carillon.idempotent_answers to carillon_worker;

grant delete, insert, select on carillon.live_schedules to carillon_api;

grant delete, insert, select on carillon.live_schedules to carillon_worker;

grant delete, insert, select, update (role, added_by_subject, added_at, removed_by_subject, removed_at) on carillon.members to carillon_api;

grant select on carillon.members to carillon_worker;

grant select on carillon.migrations to carillon_api;

grant select on carillon.migrations to carillon_worker;

grant delete, insert, select, update (state, reason, attempt_count, worker_id, cancel_requested_at, cancel_requested_by_subject, completed_at, due_at, waits_for, lane, settles_locked) on carillon.runs to carillon_api;

grant insert, select, update (state, reason, attempt_count, token, worker_id, started_at, cancel_requested_at, cancel_requested_by_subject, completed_at, error, due_at, waits_for, lane, settles_locked) on carillon.runs to carillon_worker;

grant delete, insert, select on carillon.schedule_changes to carillon_api;

grant delete, insert, select on carillon.schedule_changes to carillon_worker;

grant delete, insert, select on carillon.schedule_revisions to carillon_api;

grant delete, select on carillon.schedule_revisions to carillon_worker;

grant delete, insert, select, update (target_kind, state, revision, grant_id, next_slot_at, due_at, excluded_slots, auto_pause_threshold, consecutive_failures, run_count, failure_count, updated_by_subject, updated_at, paused_by_subject, paused_reason, paused_at, resumed_by_subject, resumed_at, deleted_by_subject, deleted_at) on carillon.schedules to carillon_api;

grant delete, select, update (state, next_slot_at, due_at, excluded_slots, consecutive_failures, run_count, failure_count, paused_by_subject, paused_reason, paused_at) on carillon.schedules to carillon_worker;

grant delete, insert, select, update (version, key_id, nonce, ciphertext, updated_by_subject, updated_at) on carillon.secrets to carillon_api;

grant select on carillon.secrets to carillon_worker;

grant select (name, next_at, requested_at, reached_at) on carillon.service_turns to carillon_api;

grant insert, select, update on carillon.service_turns to carillon_worker;

grant delete, insert, select, update (next_slot_at) on carillon.slot_backlogs to carillon_api;

grant delete, select, update (next_slot_at) on carillon.slot_backlogs to carillon_worker;

grant insert, select, update (max_schedules_per_project, max_schedules_per_user, minimum_seconds, requests_per_minute, allowed_hosts, updated_by_subject, updated_at) on carillon.tenants to carillon_api;

grant select on carillon.tenants to carillon_worker;

grant delete, insert, select, update on carillon.workers to carillon_worker;

grant execute on function carillon.count_live(text,text,text,integer) to carillon_api;

grant execute on function carillon.create_month(text,date) to carillon_api;

grant execute on function carillon.create_month(text,date) to carillon_worker;

grant execute on function carillon.drop_month(date) to carillon_worker;

grant execute on function carillon.lane_of(text,text) to carillon_api;

grant execute on function carillon.lane_of(text,text) to carillon_worker;

grant execute on function carillon.list_unowned_findings(integer) to carillon_api;

grant execute on function carillon.request_audit(timestamp with time zone) to carillon_api;

grant execute on function carillon.require_place(text,text,text,integer) to carillon_api;

grant execute on function carillon.require_room(text,text,text,integer,integer) to carillon_api;
