-- Runs wait in their own rows: no queue beside the ledger says what a run waits for.
-- Why: the queue and the ledger could disagree, and under faults they did (docs/decisions/0009). Locks: runs exclusively, for as
-- long as reading it three times takes. Old workers: refused. They would write rows that the new checks reject, so this waits
-- until no worker holds a lease.

do $$
declare
  alive text;
begin
  select string_agg(name, ', ' order by name) into alive from carillon.workers where lease_expires_at > now();
  if alive is not null then
    raise exception 'expected no worker to hold a lease while the ledger is changed, got %: stop the workers first', alive using
      errcode = 'CA003';
  end if;
end
$$;

create type carillon.run_wait as enum ('turn', 'worker', 'retry', 'deferred', 'completion');

-- The one place that knows how lanes are named. The hash only spreads: nothing breaks should another version of Postgres compute
-- it differently.
create function carillon.lane_of(kind text, tenant text) returns text
  language sql immutable parallel safe return kind || '.' || (pg_catalog.hashtext(tenant) & 63);
revoke all on function carillon.lane_of(text, text) from public;
grant execute on function carillon.lane_of(text, text) to carillon_api, carillon_worker;

create or replace function carillon.assign_lane() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if new.target_kind !~ '^[a-z][a-z0-9_]{0,30}$' then
    raise exception 'expected a kind of target such as http, got "%"', new.target_kind using
      errcode = 'check_violation', constraint = 'schedules_target_kind_check', table = 'schedules', schema = 'carillon';
  end if;
  new.lane := carillon.lane_of(new.target_kind, new.tenant_id);
  return new;
end
$$;

alter table carillon.runs
  -- From when the pipeline acts on it by itself. 'infinity': another run of its schedule must end first.
  add column due_at timestamptz,
  add column waits_for carillon.run_wait,
  -- Of the kind of its own revision. The schedule may call another kind by now.
  add column lane text collate "C",
  -- The overlap policy was edited since it began, so its end may have to start another run.
  add column settles_locked boolean not null default false,
  drop constraint runs_retrying_says_when;

-- What an upgrade rewrites is no news for the readers of the feed.
alter table carillon.runs disable trigger runs_updated;

-- A run that was handed back before it was tried is pending, as every run that was never tried.
update carillon.runs set state = 'pending', retry_at = null where state = 'retrying' and attempt_count = 0;

-- One that was lost with its worker waits for another worker, and keeps its place. All others wait for their backoff.
update carillon.runs
set due_at = runs.retry_at,
  waits_for = case when runs.error ->> 'code' = 'worker_lost' then 'worker' else 'retry' end::carillon.run_wait,
  lane = carillon.lane_of(revisions.target_kind, runs.tenant_id)
from carillon.schedule_revisions as revisions
where runs.state = 'retrying' and revisions.schedule_id = runs.schedule_id and revisions.revision = runs.revision;

-- Of several pending runs of a schedule one may start, or else the latest one waits. The others were left by an edit.
with pending as (
  select runs.schedule_id, runs.scheduled_for, schedules.tenant_id, revisions.target_kind,
    present.policy ->> 'overlap' = 'allow' as is_allowed,
    exists (
      select from carillon.runs as other
      where other.schedule_id = runs.schedule_id and other.state in ('running', 'retrying')
    ) as is_behind,
    row_number() over (partition by runs.schedule_id order by runs.scheduled_for) as place,
    row_number() over (partition by runs.schedule_id order by runs.scheduled_for desc) as place_from_last
  from carillon.runs
  join carillon.schedules on schedules.id = runs.schedule_id
  join carillon.schedule_revisions as revisions
    on revisions.schedule_id = runs.schedule_id and revisions.revision = runs.revision
  join carillon.schedule_revisions as present
    on present.schedule_id = schedules.id and present.revision = schedules.revision
  where runs.state = 'pending'
), decided as (
  select schedule_id, scheduled_for, carillon.lane_of(target_kind, tenant_id) as lane,
    case
      when is_allowed or (not is_behind and place = 1) then 'worker'
      when place_from_last = 1 then 'turn'
    end::carillon.run_wait as waits_for
  from pending
)
update carillon.runs
set state = case when decided.waits_for is null then 'skipped' else runs.state end,
  reason = case when decided.waits_for is null then 'superseded' else runs.reason end,
  completed_at = case when decided.waits_for is null then now() end,
  due_at = case decided.waits_for
    when 'turn' then 'infinity'::timestamptz
    when 'worker' then date_trunc('milliseconds', now())
  end,
  waits_for = decided.waits_for,
  lane = case when decided.waits_for is not null then decided.lane end
from decided
where runs.schedule_id = decided.schedule_id and runs.scheduled_for = decided.scheduled_for;

-- What can no longer say of which kind it is cannot be tried again: somebody took its revision away.
update carillon.runs
set state = case when attempt_count = 0 then 'skipped' else 'failed' end::carillon.run_state, reason = 'superseded',
  retry_at = null, completed_at = now()
where state in ('pending', 'retrying') and due_at is null;

-- What never ran was skipped. The version before said `failed` of a run that was handed back untried and then superseded, and left
-- it counted, as it did with runs that were displaced, cancelled or given up by a pause before they ran. A slot that was never to run
-- began and ended at one instant, and was not counted.
with untried as (
  select runs.schedule_id, count(*) as runs, count(*) filter (where runs.state = 'failed') as failed
  from carillon.runs
  where runs.attempt_count = 0 and (
    runs.state = 'cancelled'
    or (runs.completed_at > runs.begun_at and (runs.state = 'failed' or runs.reason in ('paused', 'superseded')))
  )
  group by runs.schedule_id
)
update carillon.schedules
set run_count = schedules.run_count - untried.runs, failure_count = schedules.failure_count - untried.failed
from untried
where schedules.id = untried.schedule_id;

update carillon.runs set state = 'skipped'
where state = 'failed' and reason = 'superseded' and attempt_count = 0 and completed_at > begun_at;

-- Their overlap policy may have been edited since they began, when nobody noted it.
update carillon.runs set settles_locked = true where completed_at is null;

alter table carillon.runs enable trigger runs_updated;

-- Open and not held if and only if it has an instant (I1). Names no state that a module may add.
alter table carillon.runs
  drop column retry_at,
  add constraint runs_waiting_says_when check (
    (due_at is not null) = (completed_at is null and state <> 'running')
    and (due_at is null) = (waits_for is null) and (due_at is null) = (lane is null)
    and (waits_for = 'turn') = (due_at = 'infinity')
  ),
  add constraint runs_waits_as_its_state_says check (
    case state
      when 'pending' then waits_for in ('turn', 'worker', 'deferred') and attempt_count = 0
      when 'retrying' then waits_for in ('worker', 'retry', 'deferred') and attempt_count > 0
      else waits_for is null
    end
  );

-- `completed_at is null`, not a list of states: behind row-level security Postgres has no statistics for a comparison of an enum,
-- takes every run for open and reads the ledger. With the worker, so that a rescue reads no run that merely waits.
drop index carillon.runs_open_idx;
create index runs_open_idx on carillon.runs (schedule_id, scheduled_for, worker_id) where completed_at is null;
-- Serves look and take: the earliest waiting runs of a lane.
create index runs_waiting_idx on carillon.runs (lane, due_at, schedule_id, scheduled_for) where due_at is not null;
-- Serves heartbeats: what somebody asked a worker to cancel.
create index runs_cancel_idx on carillon.runs (worker_id) where cancel_requested_at is not null and completed_at is null;

grant update (due_at, waits_for, lane, settles_locked) on carillon.runs to carillon_api, carillon_worker;
grant update (attempt_count) on carillon.runs to carillon_api;

-- A month goes as one: lock the runs, look, drop the runs and then their attempts. Looking before the lock would lose a run that a
-- late begin has inserted and not yet committed. The whole table before its month, and runs before attempts, as everybody who reads
-- or writes the ledger locks them: any other order would deadlock with them.
drop function carillon.drop_month(text);
create function carillon.drop_month(month date) returns boolean
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
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
$$;
revoke all on function carillon.drop_month(date) from public;
grant execute on function carillon.drop_month(date) to carillon_worker;

-- What fails in a worker now, for whoever examines it: {"<service>": {"since", "failures", "error"}}; null if nothing does.
alter table carillon.workers drop column engine_worker_ids, add column failing json;

-- The engine leaves.
drop function carillon.request_jobs(json);
drop function carillon.withdraw_jobs(json);
drop function carillon.require_own(uuid[]);
drop schema if exists carillon_jobs cascade;
