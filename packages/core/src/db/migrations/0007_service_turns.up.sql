-- Services that one worker at a time does take turns by a row each. The audit goes on all the time and finds more kinds of faults.
-- Why: upkeep and the audit were jobs of the engine, which has left (docs/decisions/0009). Locks: audits and audit_findings
-- exclusively, for as long as rewriting the findings takes; the pipeline touches neither. Old workers: none are left, 0006
-- refused them. Old servers go on: asking for an audit fails until they are replaced.

-- A worker that takes a turn writes its id and until when the turn is its own, does a bounded slice, and stores where it got to and
-- when the next slice is due, on the condition that the turn is still its own. Between slices the turn stays with that worker, so
-- what it keeps in memory stays useful; another one takes over when `until` has passed.
create table carillon.service_turns (
  name text collate "C" primary key check (length(name) between 1 and 100),
  next_at timestamptz not null,
  -- Somebody asked for the work to be done now, and it is not done yet.
  requested_at timestamptz,
  worker_id uuid,
  until timestamptz,
  cursor json,
  -- Up to which instant the work is done, where that can be said. It tells how far behind the service is.
  reached_at timestamptz,
  constraint service_turns_holder_has_limit check ((worker_id is null) = (until is null))
) with (fillfactor = 50);
grant select, insert, update on carillon.service_turns to carillon_worker;
-- How far the audit has got. No cursor: it may name a schedule of another tenant.
grant select (name, next_at, requested_at, reached_at) on carillon.service_turns to carillon_api;

-- What older versions left in the ledger is history, not damage: runs that were never tried and read `failed: superseded`, ends by the
-- start of their transaction, counts with runs that never ran. The audit judges by these rules only what is younger.
insert into carillon.service_turns (name, next_at, cursor)
select 'audit', now(), json_build_object('legacyUntil', (extract(epoch from now()) * 1000)::bigint)
where exists (select from carillon.runs);

drop function carillon.request_audit(integer);
create function carillon.request_audit(asked_at timestamptz) returns void
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
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
$$;
revoke all on function carillon.request_audit(timestamptz) from public;
grant execute on function carillon.request_audit(timestamptz) to carillon_api;

-- Jobs have left: a waiting run is stuck or it is not.
delete from carillon.audit_findings where kind = 'job_without_run';
alter type carillon.finding_kind rename to finding_kind_before;
create type carillon.finding_kind as enum (
  'slot_lost', 'slot_unknown', 'schedule_past_due', 'run_without_lease', 'run_stuck', 'attempt_missing', 'revision_missing',
  'run_contradicted', 'count_wrong'
);
alter table carillon.audit_findings
  alter column kind type carillon.finding_kind
    using (case kind when 'run_without_job' then 'run_stuck' else kind::text end)::carillon.finding_kind,
  -- When it was found first. An audit that finds it again takes it over, so that each fault is listed once.
  add column found_at timestamptz;
drop type carillon.finding_kind_before;
update carillon.audit_findings as findings
set found_at = audits.completed_at
from carillon.audits
where audits.id = findings.audit_id;
alter table carillon.audit_findings alter column found_at set not null;
-- Serves an audit that finds something again.
create index audit_findings_schedule_idx on carillon.audit_findings (schedule_id, scheduled_for);

-- False for a report of what was found on the way, before everything was looked at.
alter table carillon.audits add column is_whole boolean not null default true;
alter table carillon.audits alter column is_whole drop default;
-- Lost slots that got their line. Their work was not done, so they stay visible for a day though nothing is left to repair.
alter table carillon.audits add column lost_count bigint not null default 0;
-- Serves reports: repairs are written down by themselves, in the transactions that repair.
create index audits_repairs_idx on carillon.audits (completed_at) where repaired_count > 0 and not is_whole;

-- When the worker last had no room for another run; null: never. What is due and waits behind a full worker is not stuck.
alter table carillon.workers add column full_at timestamptz;

-- For the key of the installation: what an audit found of schedules that are gone is behind nobody's wall.
create function carillon.list_unowned_findings(most integer) returns table (
  audit_id uuid, found_at timestamptz, seen_at timestamptz, kind carillon.finding_kind, schedule_id uuid,
  scheduled_for timestamptz, detail text, is_repaired boolean
)
  language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select findings.audit_id, findings.found_at, audits.completed_at, findings.kind, findings.schedule_id, findings.scheduled_for,
    findings.detail, findings.is_repaired
  from carillon.audit_findings as findings
  join carillon.audits on audits.id = findings.audit_id
  where findings.tenant_id is null
  order by findings.audit_id desc, findings.ordinal
  limit most
$$;
revoke all on function carillon.list_unowned_findings(integer) from public;
grant execute on function carillon.list_unowned_findings(integer) to carillon_api;
