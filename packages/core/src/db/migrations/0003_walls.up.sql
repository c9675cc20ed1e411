-- Walls between tenants, grants for every schedule, members, secrets, and what a tenant may have.
-- Why: several tenants on one installation (I8, I9). Locks: each table exclusively, for as long as every schedule takes to get
-- its grant. Old workers and servers must be stopped first: their roles may no longer read anything.

-- Two roles that own nothing. The API acts as the first, within one tenant and project; workers as the second, limited to what
-- the pipeline needs. Roles belong to the whole server: databases of one server share them, and `down` leaves them.
do $$
declare
  name text;
  right_to_act text := case when current_setting('server_version_num')::integer >= 160000 then 'SET' else 'MEMBER' end;
begin
  foreach name in array array['carillon_api', 'carillon_worker'] loop
    begin
      if not exists (select from pg_catalog.pg_roles where rolname = name) then
        execute format('create role %I nologin', name);
      end if;
      if not pg_catalog.pg_has_role(current_user, name, right_to_act) then
        execute format('grant %I to current_user', name);
      end if;
    exception
      -- Another database of the same server was migrated at the same moment.
      when duplicate_object or unique_violation then null;
      when insufficient_privilege then
        raise exception 'expected the roles carillon_api and carillon_worker, and that % may act as them, got neither: have an administrator run "create role carillon_api; create role carillon_worker; grant carillon_api, carillon_worker to %"', current_user, current_user
          using errcode = 'insufficient_privilege';
    end;
    if exists (select from pg_catalog.pg_roles where rolname = name and (rolsuper or rolbypassrls or rolcreaterole)) then
      raise exception 'expected the role % to be limited by row-level security, got one that is not: alter role % nosuperuser nobypassrls nocreaterole', name, name;
    end if;
  end loop;
end
$$;

alter type carillon.schedule_change add value if not exists 'grant_expiring';
alter type carillon.schedule_change add value if not exists 'grant_revoked';
alter type carillon.schedule_change add value if not exists 'grant_renewed';

-- What a tenant may have, where it differs from what the installation allows to all. Null: as the installation says.
create table carillon.tenants (
  tenant_id text collate "C" primary key check (length(tenant_id) between 1 and 100 and tenant_id <> '_platform'),
  max_schedules_per_project integer check (max_schedules_per_project > 0),
  max_schedules_per_user integer check (max_schedules_per_user > 0),
  minimum_seconds integer check (minimum_seconds > 0),
  requests_per_minute integer check (requests_per_minute > 0),
  allowed_hosts text[],
  updated_by_subject text not null,
  updated_at timestamptz not null
);

-- What the built-in authorization knows. Who has no row may do what their credential says; a row limits that, and who was
-- removed may do nothing: neither by a key, nor through a schedule.
create table carillon.members (
  tenant_id text collate "C" not null check (length(tenant_id) between 1 and 100),
  project_id text collate "C" not null check (length(project_id) between 1 and 100),
  subject text collate "C" not null,
  role carillon.role not null,
  added_by_subject text not null,
  added_at timestamptz not null,
  removed_by_subject text,
  removed_at timestamptz,
  primary key (tenant_id, project_id, subject),
  constraint members_removed_says_by_whom check ((removed_at is null) = (removed_by_subject is null))
);

-- Secrets that schedules refer to by name (I8), encrypted before they come here: a copy of this table opens nothing.
create table carillon.secrets (
  tenant_id text collate "C" not null check (length(tenant_id) between 1 and 100),
  project_id text collate "C" not null check (length(project_id) between 1 and 100),
  name text collate "C" not null check (length(name) between 1 and 100),
  -- Grows with each value, which is bound to it: the value of one version is not opened as another's.
  version integer not null check (version > 0),
  -- Which of the installation's keys it was encrypted with.
  key_id text not null,
  nonce bytea not null check (length(nonce) = 12),
  -- With the tag of AES-256-GCM at its end.
  ciphertext bytea not null check (length(ciphertext) >= 16),
  created_by_subject text not null,
  created_at timestamptz not null,
  updated_by_subject text not null,
  updated_at timestamptz not null,
  primary key (tenant_id, project_id, name)
);

-- Up to which id the feed has been forgotten. Of no tenant: ids are drawn by all of them.
create table carillon.feed_floor (
  is_only boolean primary key default true check (is_only),
  forgotten_id bigint not null
);
insert into carillon.feed_floor (forgotten_id)
select coalesce(
  (select min(id) - 1 from carillon.feed_entries),
  (select case when is_called then last_value else 0 end from carillon.feed_entries_id_seq)
);

-- What a grant must carry for a revision's target: decided when it is written, compared with the grant when it begins.
alter table carillon.schedule_revisions add column required_scope text;
update carillon.schedule_revisions
set required_scope = case target_kind
  -- As the target says it: the host without a dot at its end. What no target reads any more needs what nobody has.
  when 'http' then 'http:dispatch:' || coalesce(
    regexp_replace(substring(target ->> 'url' from '^https?://([A-Za-z0-9._:[\]-]+)(?:[/?#]|$)'), '\.(:[0-9]+)?$', '\1'),
    'unreadable'
  )
  else target_kind || ':execute:*'
end;
alter table carillon.schedule_revisions alter column required_scope set not null;

-- A grant that was made for one schedule carries that schedule only, and ends with it.
alter table carillon.execution_grants
  add column schedule_id uuid,
  add column warned_at timestamptz;

-- Schedules of before get what they need and no more: of an HTTP target its hosts, of other kinds everything of that kind.
insert into carillon.execution_grants (
  id, tenant_id, project_id, subject, scopes, created_by_subject, created_at, revoked_at, revoked_by_subject, schedule_id
)
select schedules.id, schedules.tenant_id, schedules.project_id, schedules.owner_subject, needed.scopes, 'system:carillon',
  schedules.created_at, schedules.deleted_at, schedules.deleted_by_subject, schedules.id
from carillon.schedules
cross join lateral (
  select array_agg(distinct revisions.required_scope) as scopes
  from carillon.schedule_revisions as revisions
  where revisions.schedule_id = schedules.id and revisions.grant_id is null
) as needed
where needed.scopes is not null;
update carillon.schedule_revisions set grant_id = schedule_id where grant_id is null;
update carillon.schedules set grant_id = id where grant_id is null;
-- The keys of what was just written are checked at the end of the transaction otherwise, and then nothing can be altered.
set constraints all immediate;
alter table carillon.schedules alter column grant_id set not null;
-- The revision that a schedule is at refers to the same grant by a key of its own. This one would cost an index that every slot
-- rewrites; without the index, retention would walk the whole project for each grant that it takes.
alter table carillon.schedules drop constraint schedules_tenant_id_project_id_grant_id_fkey;
alter table carillon.schedule_revisions alter column grant_id set not null;

-- An Idempotency-Key is its user's: two who choose the same one in a project do not meet. Answers of before tell whose they were,
-- and are told again with the grant that their schedule has now.
alter table carillon.idempotent_answers add column subject text collate "C";
update carillon.idempotent_answers
set subject = coalesce(answer ->> 'createdBy', ''),
  answer = (
    left(rtrim(answer::text), -1) || ',"grantId":"' || schedules.grant_id || '","grantExpiresAt":null,"isGrantRevoked":false}'
  )::json
from carillon.schedules
where schedules.id = idempotent_answers.schedule_id;
delete from carillon.idempotent_answers where subject is null;
alter table carillon.idempotent_answers
  alter column subject set not null,
  drop constraint idempotent_answers_pkey,
  add primary key (tenant_id, project_id, subject, key);

-- Serves the revocation of a schedule's own grants.
create index execution_grants_schedule_idx on carillon.execution_grants (schedule_id) where schedule_id is not null;
-- Serves the removal of grants: each is looked for among the revisions, which are many.
create index schedule_revisions_grant_idx on carillon.schedule_revisions (grant_id);
-- Serves the warning before expiry.
create index execution_grants_expiry_idx on carillon.execution_grants (expires_at)
  where expires_at is not null and revoked_at is null and warned_at is null;
-- Serves counting what a project and a user have.
create index schedules_live_idx on carillon.schedules (tenant_id, project_id, owner_subject)
  where state in ('active', 'paused');

alter table carillon.schedules add constraint schedules_not_of_the_platform
  check (tenant_id <> '_platform' and project_id <> '_platform');

-- Every function names where it looks: pg_temp last, or who calls one that acts with other rights could put a type of its own
-- in the place of `date`.

-- A wall (I9): the API sees and writes rows of its transaction's tenant and project only; unset and empty see nothing. The
-- owner is held too, by force: it sees what it may see as a worker, which it may act as, and no more.
create function carillon.wall_in(relation text) returns void language plpgsql set search_path = pg_catalog, pg_temp as $$
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
$$;

select carillon.wall_in(relation)
from unnest(array[
  'api_keys', 'attempts', 'audit_findings', 'execution_grants', 'feed_entries', 'idempotent_answers', 'members', 'runs',
  'schedule_changes', 'schedule_revisions', 'schedules', 'secrets'
]) as walled(relation);
-- A policy of the parent does not hold for who reads a month directly.
select carillon.wall_in(child.relname)
from pg_catalog.pg_inherits
join pg_catalog.pg_class as child on child.oid = inhrelid
where inhparent in ('carillon.runs'::regclass, 'carillon.attempts'::regclass) and child.relkind = 'r';

alter table carillon.tenants enable row level security;
alter table carillon.tenants force row level security;
create policy tenant_wall on carillon.tenants to carillon_api
  using (tenant_id = nullif(current_setting('carillon.tenant_id', true), ''))
  with check (tenant_id = nullif(current_setting('carillon.tenant_id', true), ''));
create policy pipeline on carillon.tenants to carillon_worker using (true) with check (true);

-- Whose key it is must be known before there is a tenant: who shows a key sees that one row.
create policy shown_key on carillon.api_keys for select to carillon_api
  using (hash = decode(nullif(current_setting('carillon.key_hash', true), ''), 'hex'));

grant usage on schema carillon to carillon_api, carillon_worker;

grant select, insert, delete on
  carillon.schedules, carillon.schedule_revisions, carillon.schedule_changes, carillon.runs, carillon.execution_grants,
  carillon.api_keys, carillon.idempotent_answers, carillon.members, carillon.secrets
  to carillon_api;
grant select, insert on carillon.feed_entries, carillon.tenants to carillon_api;
grant select, delete on carillon.attempts to carillon_api;
grant select on carillon.audits, carillon.audit_findings, carillon.feed_floor, carillon.feed_entries_id_seq to carillon_api;
-- Nobody moves a row to another tenant, project or schedule.
grant update (
  target_kind, state, revision, grant_id, next_slot_at, due_at, excluded_slots, auto_pause_threshold, consecutive_failures,
  run_count, failure_count, updated_by_subject, updated_at, paused_by_subject, paused_reason, paused_at, resumed_by_subject,
  resumed_at, deleted_by_subject, deleted_at
) on carillon.schedules to carillon_api;
grant update (state, reason, retry_at, cancel_requested_at, cancel_requested_by_subject, completed_at, worker_id)
  on carillon.runs to carillon_api;
grant update (expires_at, revoked_at, revoked_by_subject, warned_at) on carillon.execution_grants to carillon_api;
grant update (revoked_at, revoked_by_subject) on carillon.api_keys to carillon_api;
grant update (request_hash, schedule_id, answer, answered_at) on carillon.idempotent_answers to carillon_api;
grant update (role, added_by_subject, added_at, removed_by_subject, removed_at) on carillon.members to carillon_api;
grant update (version, key_id, nonce, ciphertext, updated_by_subject, updated_at) on carillon.secrets to carillon_api;
grant update (
  max_schedules_per_project, max_schedules_per_user, minimum_seconds, requests_per_minute, allowed_hosts,
  updated_by_subject, updated_at
) on carillon.tenants to carillon_api;

-- No keys for the worker: it authenticates nobody. It makes no schedule, gives no right and keeps no secret.
grant select, update (
  state, next_slot_at, due_at, excluded_slots, consecutive_failures, run_count, failure_count, paused_by_subject,
  paused_reason, paused_at
) on carillon.schedules to carillon_worker;
grant select, insert on carillon.schedule_changes to carillon_worker;
grant select, insert, update (
  state, reason, attempt_count, token, worker_id, started_at, retry_at, cancel_requested_at, cancel_requested_by_subject,
  completed_at, error
) on carillon.runs to carillon_worker;
grant select, insert on carillon.attempts to carillon_worker;
grant select on carillon.schedule_revisions, carillon.members, carillon.secrets, carillon.tenants to carillon_worker;
grant select, update (warned_at) on carillon.execution_grants to carillon_worker;
grant select, insert, delete on carillon.feed_entries, carillon.audits, carillon.audit_findings to carillon_worker;
grant select, update on carillon.feed_floor to carillon_worker;
grant select, insert, update, delete on carillon.workers to carillon_worker;
-- Retention.
grant delete on carillon.schedules, carillon.schedule_revisions, carillon.schedule_changes, carillon.execution_grants
  to carillon_worker;
-- It updates none: what it removes it locks first.
grant select, update (answered_at), delete on carillon.idempotent_answers to carillon_worker;

-- All the while that a change of months waits for its lock the pipeline queues behind it, so it waits briefly: who asked
-- hears SQLSTATE 55P03 and asks again.
create function carillon.lock_months() returns void language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  perform set_config('lock_timeout', '1000', true);
  perform pg_advisory_xact_lock(211947792, 2);
end
$$;

-- Months of the ledger are made and dropped by who owns it: these two act as the owner, and read no row.
create function carillon.create_month(parent text, month date) returns boolean
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
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
$$;

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

-- Jobs are the engine's, and of all tenants. The API asks for them here: these act as a worker, so they look at the wall
-- themselves, and touch the jobs of nobody else's schedule (T-9).
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

create function carillon.request_audit(max_attempts integer) returns void
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform carillon_jobs.add_job('upkeep.audit', '{}'::json, job_key => 'upkeep.audit', max_attempts => request_audit.max_attempts);
end
$$;

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

-- Only who may create in the schema may be given a function of it.
grant create on schema carillon to carillon_worker;
alter function carillon.request_jobs(json) owner to carillon_worker;
alter function carillon.withdraw_jobs(json) owner to carillon_worker;
alter function carillon.request_audit(integer) owner to carillon_worker;
alter function carillon.require_own(uuid[]) owner to carillon_worker;
revoke create on schema carillon from carillon_worker;

-- What a project and a user in it may have (E-31, E-32), counted by whoever adds one, whatever way it came. The limits are
-- the transaction's, or the tenant's own; who names none is held to none.
create function carillon.require_place(tenant text, project text, owner text, added integer) returns void
  language plpgsql set search_path = pg_catalog, pg_temp as $$
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
$$;

-- Who adds to a project that is far from full waits for nobody: it holds the lock with others, who are at most as many as
-- there are connections, and each adds one. Nearer to the limit one holds it alone, and counts what all others have
-- committed. Who cannot have it alone at once is told to begin again: two that waited for each other would never end.
create function carillon.require_room(tenant text, project text, owner text, most integer, added integer) returns void
  language plpgsql set search_path = pg_catalog, pg_temp as $$
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
$$;

create function carillon.count_live(tenant text, project text, owner text, most integer) returns bigint
  language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if owner is null then
    return (
      select count(*)
      from (
        select
        from carillon.schedules
        where tenant_id = tenant and project_id = project and state in ('active', 'paused')
        limit most
      ) as live
    );
  end if;
  return (
    select count(*)
    from (
      select
      from carillon.schedules
      where tenant_id = tenant and project_id = project and owner_subject = owner and state in ('active', 'paused')
      limit most
    ) as live
  );
end
$$;

create function carillon.require_places() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  perform carillon.require_place(added.tenant_id, added.project_id, added.owner_subject, count(*)::integer)
  from added
  where added.state in ('active', 'paused')
  group by added.tenant_id, added.project_id, added.owner_subject;
  return null;
end
$$;

create trigger schedules_inserted after insert on carillon.schedules
  referencing new table as added for each statement execute function carillon.require_places();

revoke all on all functions in schema carillon from public;
grant execute on function carillon.create_month(text, date) to carillon_api, carillon_worker;
grant execute on function carillon.drop_month(text) to carillon_worker;
grant execute on function
  carillon.request_jobs(json), carillon.withdraw_jobs(json), carillon.request_audit(integer),
  carillon.require_place(text, text, text, integer), carillon.require_room(text, text, text, integer, integer),
  carillon.count_live(text, text, text, integer)
  to carillon_api;
grant select on carillon.migrations to carillon_api, carillon_worker;
