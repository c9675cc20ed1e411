-- The version before knows no detached run. A worker that took such a run for held would never settle it.
do $$
declare
  alive text;
begin
  select string_agg(name, ', ' order by name) into alive from workers where lease_expires_at > now();
  if alive is not null then
    raise exception 'expected no worker to hold a lease while runs forget to be detached, got %: stop the workers first', alive using
      errcode = 'CA003';
  end if;
end
$$;

-- An attempt that is still open elsewhere is lost: the run is tried again, with the same idempotency key.
insert into attempts (
  schedule_id, scheduled_for, attempt, tenant_id, project_id, worker_id, outcome, started_at, completed_at, error
)
select schedule_id, scheduled_for, attempt_count, tenant_id, project_id, worker_id, 'lost', started_at, now(),
  '{"code":"worker_lost","message":"the version of Carillon that was installed again knows no detached runs"}'
from runs
where completed_at is null and state = 'detached'
on conflict do nothing;

alter table runs
  drop constraint runs_held_has_worker,
  drop constraint runs_completion_is_awaited,
  drop constraint runs_waits_as_its_state_says;

update runs
set state = 'retrying', waits_for = 'worker', due_at = date_trunc('milliseconds', now()), worker_id = null,
  lane = replace(lane, '~', '.')
where completed_at is null and state = 'detached';

update attempts set outcome = 'failed' where outcome = 'timed_out';

alter table runs
  drop column completion,
  drop column heartbeat_at,
  drop column reference,
  add constraint runs_running_has_worker check ((state = 'running') = (worker_id is not null)),
  add constraint runs_waits_as_its_state_says check (
    case state
      when 'pending' then waits_for in ('turn', 'worker', 'deferred') and attempt_count = 0
      when 'retrying' then waits_for in ('worker', 'retry', 'deferred') and attempt_count > 0
      else waits_for is null
    end
  );
alter table attempts drop column completed_by;

do $$
begin
  execute format('revoke insert on slot_backlogs from %I', current_schema() || '_worker');
end
$$;

drop function is_callback(uuid, text, text, bytea);
drop function read_callback_key();
drop table callback_key;
