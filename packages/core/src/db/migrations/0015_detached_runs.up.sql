-- Detached runs: their target passed the work on, and they end when somebody completes them or their deadline passes.
-- Why: a worker that held such a run would hold a place, and its restart would lose the work. Locks: runs exclusively, for as long as
-- the new checks read it once. Old workers and servers go on: they make no run detached and store no completion. An old worker takes a
-- target with a callback for malformed, and an old server refuses to cancel a detached run, so upgrade workers first and use callbacks
-- once all of them are new.

alter table runs
  -- What a completion said: {"attempt", "by", "outcome", "result", "error", "retryable"}. It moves into the attempt when the run is settled.
  add column completion json,
  -- When the called side last moved the deadline of a detached run.
  add column heartbeat_at timestamptz,
  -- What the target called the work that it passed on, for people.
  add column reference text,
  drop constraint runs_running_has_worker,
  -- The worker of a detached run is the one that dispatched it.
  add constraint runs_held_has_worker check ((state in ('running', 'detached')) = (worker_id is not null)),
  add constraint runs_completion_is_awaited check (completion is null or state in ('running', 'detached')),
  drop constraint runs_waits_as_its_state_says,
  add constraint runs_waits_as_its_state_says check (
    case state
      when 'pending' then waits_for in ('turn', 'worker', 'deferred') and attempt_count = 0
      when 'retrying' then waits_for in ('worker', 'retry', 'deferred') and attempt_count > 0
      when 'detached' then waits_for = 'completion' and attempt_count > 0
      else waits_for is null
    end
  );

-- Who completed the attempt, if it was neither its worker nor a rescuer.
alter table attempts add column completed_by text;

-- The secret behind the tokens of callbacks. No role but the owner reads the table: workers and servers call the functions below.
create table callback_key (
  is_only boolean primary key default true check (is_only),
  key bytea not null check (length(key) = 32)
);
-- Four random UUIDs hold more random bits than are kept.
insert into callback_key (key) select sha256(string_agg(uuid_send(gen_random_uuid()), '')) from generate_series(1, 4);

-- For workers, which make tokens. A worker makes one for each call that asks for it, without a round trip.
create function read_callback_key() returns bytea
  language sql stable security definer set search_path from current as $$
  select key from callback_key
$$;
revoke all on function read_callback_key() from public;

-- For servers, which only compare. The hash is nested, so an attacker cannot extend a text and its mac.
create function is_callback(run uuid, tenant text, project text, mac bytea) returns boolean
  language sql stable security definer set search_path from current as $$
  select mac = sha256(key || sha256(key || uuid_send(run) || convert_to(tenant || '/' || project, 'UTF8'))) from callback_key
$$;
revoke all on function is_callback(uuid, text, text, bytea) from public;

do $$
declare
  api text := current_schema() || '_api';
  worker text := current_schema() || '_worker';
begin
  execute format('grant update (completion, heartbeat_at, reference) on runs to %I', worker);
  execute format('grant update (completion, heartbeat_at) on runs to %I', api);
  -- A hook may complete or pause a schedule whose slots are due.
  execute format('grant insert on slot_backlogs to %I', worker);
  execute format('grant execute on function read_callback_key() to %I', worker);
  execute format('grant execute on function is_callback(uuid, text, text, bytea) to %I', api);
end
$$;
