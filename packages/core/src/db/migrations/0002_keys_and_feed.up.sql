-- API keys, answers that are given again, the feed of what changed, and what each worker runs on.
-- Why: the HTTP service. Locks: a short one on runs, schedule_changes and workers; new tables else. Old workers go on: the
-- triggers write for them too, and the new columns may stay empty.

create type carillon.role as enum ('member', 'admin');
create type carillon.feed_kind as enum ('run', 'schedule');

-- Who may call the API, and in whose name. A key itself is shown once and never stored.
create table carillon.api_keys (
  id uuid primary key,
  tenant_id text collate "C" not null check (length(tenant_id) between 1 and 100),
  project_id text collate "C" not null check (length(project_id) between 1 and 100),
  subject text not null,
  role carillon.role not null,
  -- The key's first characters: enough to tell keys apart in a list, too few to open anything.
  prefix text not null,
  -- SHA-256. A key is long and random, so a slow hash would only slow every request.
  hash bytea not null unique check (length(hash) = 32),
  created_by_subject text not null,
  created_at timestamptz not null,
  revoked_by_subject text,
  revoked_at timestamptz,
  constraint api_keys_revoked_says_by_whom check ((revoked_at is null) = (revoked_by_subject is null))
);

-- Serves the list of a project's keys, newest first.
create index api_keys_project_idx on carillon.api_keys (tenant_id, project_id, id);

-- What a create with an Idempotency-Key was answered. Written with the schedule in one transaction: a crash leaves both or
-- neither. That one is in flight is told by an advisory lock, which a crash lets go of.
create table carillon.idempotent_answers (
  tenant_id text collate "C" not null,
  project_id text collate "C" not null,
  key text collate "C" not null check (length(key) between 1 and 255),
  -- SHA-256 of what was asked for.
  request_hash bytea not null check (length(request_hash) = 32),
  schedule_id uuid not null,
  answer json not null,
  answered_at timestamptz not null,
  primary key (tenant_id, project_id, key)
);

-- Serves forgetting.
create index idempotent_answers_age_idx on carillon.idempotent_answers (answered_at);

-- What changed, for whoever follows it live. One row per statement and project, whatever number of
-- runs the statement wrote: a herd is followed at the price of its batches. Kept for hours; the ledger is the record.
create table carillon.feed_entries (
  id bigint generated always as identity primary key,
  -- Ids are drawn before commits, so a reader that went by them could pass one that is not yet to be seen. It reads what is
  -- older than every transaction still under way, in the order of this.
  xact_id xid8 not null default pg_current_xact_id(),
  tenant_id text collate "C" not null,
  project_id text collate "C" not null,
  kind carillon.feed_kind not null,
  schedule_ids uuid[] not null,
  -- Of runs: their slots, and the state each was brought to. Of schedules: nothing, and the change.
  slots timestamptz[],
  changes text[] not null,
  noted_at timestamptz not null default now(),
  constraint feed_entries_are_whole check (
    cardinality(schedule_ids) = cardinality(changes)
    and case kind when 'run' then cardinality(slots) = cardinality(changes) else slots is null end
  )
);

-- Serves following a project.
create index feed_entries_project_idx on carillon.feed_entries (tenant_id, project_id, xact_id, id);
-- Serves forgetting; as small as nothing, for rows come in the order of time.
create index feed_entries_age_idx on carillon.feed_entries using brin (noted_at);

-- By trigger, so that no writer of the ledger can forget it.
create function carillon.note_runs() returns trigger language plpgsql as $$
begin
  insert into carillon.feed_entries (tenant_id, project_id, kind, schedule_ids, slots, changes)
  select changed.tenant_id, changed.project_id, 'run', array_agg(changed.schedule_id), array_agg(changed.scheduled_for),
    array_agg(changed.state::text)
  from changed
  group by changed.tenant_id, changed.project_id;
  return null;
end
$$;

create function carillon.note_schedules() returns trigger language plpgsql as $$
begin
  insert into carillon.feed_entries (tenant_id, project_id, kind, schedule_ids, changes)
  select changed.tenant_id, changed.project_id, 'schedule', array_agg(changed.schedule_id order by changed.id),
    array_agg(changed.change::text order by changed.id)
  from changed
  group by changed.tenant_id, changed.project_id;
  return null;
end
$$;

create trigger runs_inserted after insert on carillon.runs
  referencing new table as changed for each statement execute function carillon.note_runs();
create trigger runs_updated after update on carillon.runs
  referencing new table as changed for each statement execute function carillon.note_runs();
create trigger schedule_changes_inserted after insert on carillon.schedule_changes
  referencing new table as changed for each statement execute function carillon.note_schedules();

-- Two workers that know different rules of time zones would see different slots: `doctor` compares these.
alter table carillon.workers add column version text, add column tzdata_version text;
