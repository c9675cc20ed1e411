-- Transcripts: what targets record about their runs while they run, line by line.
-- Why: of a run that talks to a model or calls tools, people want to read what happened, and to follow it live.
-- Locks: none on existing tables. Old workers and servers go on: they create and drop months without transcripts, or with them, and
-- record nothing.

-- A line belongs to a token, not to an attempt: an attempt that was handed back or deferred is not charged, so the next one has its number.
-- No foreign key to runs: a line is written only while its run is locked, and its month is dropped after that of its run.
create table transcripts (
  schedule_id uuid not null,
  scheduled_for timestamptz not null,
  -- Of the run, while this worker held it (I12).
  token integer not null,
  -- Counts the lines under one token from 1. The worker counts, so a line that is sent twice is stored once.
  seq integer not null check (seq > 0),
  attempt smallint not null check (attempt > 0),
  tenant_id text collate "C" not null,
  project_id text collate "C" not null,
  at timestamptz not null,
  entry json not null,
  primary key (schedule_id, scheduled_for, token, seq)
) partition by range (scheduled_for);

select enable_row_security('transcripts');

create or replace function create_month(parent text, month date) returns boolean
  language plpgsql security definer set search_path from current as $$
declare
  child text := parent || to_char(month, '_YYYY_MM');
  -- Rows of runs are updated two or three times, so their old versions are vacuumed early. Rows of the others are written once;
  -- a vacuum that comes early and often freezes them while they are still in memory.
  storage text := case parent
    when 'runs' then 'autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0'
    when 'attempts' then 'autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0'
    when 'transcripts' then 'autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0'
  end;
begin
  if storage is null or month <> date_trunc('month', month)::date then
    raise exception 'expected a month of runs, attempts or transcripts, got % of %', month, parent;
  end if;
  perform lock_months();
  if to_regclass(format('%I', child)) is not null then
    return false;
  end if;
  -- A plain table that is attached. `create table … partition of` would lock the parent against every reader and writer;
  -- attaching only keeps other changes of the table away. `like` brings the checks and indexes that attaching expects.
  execute format('create table %I (like %I including all) with (%s)', child, parent, storage);
  perform enable_row_security(child);
  execute format(
    'alter table %I attach partition %I for values from (%L) to (%L)', parent, child,
    to_char(month, 'YYYY-MM-DD"T00:00:00Z"'), to_char(month + interval '1 month', 'YYYY-MM-DD"T00:00:00Z"')
  );
  return true;
end
$$;

-- In this order, as writers lock them: runs, attempts, transcripts.
create or replace function drop_month(month date) returns boolean
  language plpgsql security definer set search_path from current as $$
declare
  suffix text := to_char(month, '_YYYY_MM');
  runs regclass := to_regclass(format('%I', 'runs' || suffix));
  attempts regclass := to_regclass(format('%I', 'attempts' || suffix));
  transcripts regclass := to_regclass(format('%I', 'transcripts' || suffix));
  has_open boolean := false;
begin
  perform lock_months();
  if runs is not null then
    lock table only runs in access exclusive mode;
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
  if transcripts is not null then
    execute format('drop table %s', transcripts);
  end if;
  return runs is not null or attempts is not null or transcripts is not null;
end
$$;

do $$
begin
  execute format('grant select, delete on transcripts to %I', current_schema() || '_api');
  execute format('grant select, insert on transcripts to %I', current_schema() || '_worker');
end
$$;
