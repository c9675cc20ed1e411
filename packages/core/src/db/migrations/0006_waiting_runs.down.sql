-- Workers of this version would go on against columns that are gone.
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

alter table carillon.runs disable trigger runs_updated;
alter table carillon.runs
  drop constraint runs_waits_as_its_state_says,
  drop constraint runs_waiting_says_when,
  add column retry_at timestamptz;
update carillon.runs set retry_at = due_at where state = 'retrying';
alter table carillon.runs enable trigger runs_updated;

drop index carillon.runs_cancel_idx;
drop index carillon.runs_waiting_idx;
drop index carillon.runs_open_idx;
create index runs_open_idx on carillon.runs (schedule_id, scheduled_for) where state in ('pending', 'running', 'retrying');

alter table carillon.runs
  drop column settles_locked,
  drop column lane,
  drop column waits_for,
  drop column due_at,
  add constraint runs_retrying_says_when check ((state = 'retrying') = (retry_at is not null));
revoke update (attempt_count) on carillon.runs from carillon_api;
grant update (retry_at) on carillon.runs to carillon_api, carillon_worker;
drop type carillon.run_wait;

create or replace function carillon.assign_lane() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if new.target_kind !~ '^[a-z][a-z0-9_]{0,30}$' then
    raise exception 'expected a kind of target such as http, got "%"', new.target_kind using
      errcode = 'check_violation', constraint = 'schedules_target_kind_check', table = 'schedules', schema = 'carillon';
  end if;
  -- The hash only spreads: nothing breaks should another version of Postgres compute it differently.
  new.lane := new.target_kind || '.' || (hashtext(new.tenant_id) & 63);
  return new;
end
$$;
drop function carillon.lane_of(text, text);

drop function carillon.drop_month(date);
create function carillon.drop_month(child text) returns boolean
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform carillon.lock_months();
  if not exists (
    select
    from pg_catalog.pg_inherits
    where inhrelid = to_regclass(format('carillon.%I', child))
      and inhparent in ('carillon.runs'::regclass, 'carillon.attempts'::regclass)
  ) then
    return false;
  end if;
  execute format('drop table carillon.%I', child);
  return true;
end
$$;
revoke all on function carillon.drop_month(text) from public;
grant execute on function carillon.drop_month(text) to carillon_worker;

alter table carillon.workers drop column failing, add column engine_worker_ids text[] not null default '{}';

create function carillon.require_own(schedule_ids uuid[]) returns void language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if exists (
    select
    from unnest(schedule_ids) as asked(id)
    where not exists (
      select
      from carillon.schedules
      where schedules.id = asked.id
        and schedules.tenant_id = nullif(current_setting('carillon.tenant_id', true), '')
        and schedules.project_id = nullif(current_setting('carillon.project_id', true), '')
    )
  ) then
    raise exception 'expected schedules of the transaction''s own project, got others' using errcode = 'insufficient_privilege';
  end if;
end
$$;

create function carillon.request_jobs(slots json) returns void
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform carillon.require_own(array(select (slot ->> 'scheduleId')::uuid from json_array_elements(slots) as slot));
  perform carillon_jobs.add_jobs(array(
    select json_populate_record(null::carillon_jobs.job_spec, json_build_object(
      'identifier', 'attempt.' || (slot ->> 'targetKind'),
      'payload', json_build_object('scheduleId', slot ->> 'scheduleId', 'scheduledFor', slot ->> 'scheduledFor'),
      'run_at', slot ->> 'runAt',
      'max_attempts', slot ->> 'maxAttempts',
      'job_key', (slot ->> 'scheduleId') || ':' || (slot ->> 'scheduledFor')
    ))
    from json_array_elements(slots) as slot
  ));
end
$$;

create function carillon.withdraw_jobs(slots json) returns void
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform carillon.require_own(array(select (slot ->> 'scheduleId')::uuid from json_array_elements(slots) as slot));
  perform carillon_jobs.remove_job((slot ->> 'scheduleId') || ':' || (slot ->> 'scheduledFor'))
  from json_array_elements(slots) as slot;
end
$$;

grant create on schema carillon to carillon_worker;
alter function carillon.request_jobs(json) owner to carillon_worker;
alter function carillon.withdraw_jobs(json) owner to carillon_worker;
alter function carillon.require_own(uuid[]) owner to carillon_worker;
revoke create on schema carillon from carillon_worker;
revoke all on function carillon.request_jobs(json), carillon.withdraw_jobs(json), carillon.require_own(uuid[]) from public;
grant execute on function carillon.request_jobs(json), carillon.withdraw_jobs(json) to carillon_api;
