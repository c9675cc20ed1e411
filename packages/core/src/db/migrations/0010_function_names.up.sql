-- The functions of quotas and of tenant isolation, and a policy, have names that say what they do. What they do is unchanged.
-- Why: a reader of schema.sql could not guess what `require_room`, `wall_in` or `note_life` meant. Policies, triggers and grants refer to
-- a function by its oid, so they follow the new names. Four functions call others by name and are redefined.
-- Pages of service_turns are filled completely. Its few rows share a page anyway, and their updates are HOT without reserved space
-- (tests/db/hot-updates.test.ts).
-- Locks: schedules against writes, and api_keys exclusively, for a moment. Old workers: they go on, because they call none of these
-- functions by name. Old servers: an edit that makes a completed schedule active again fails until the server is replaced, because it
-- calls `require_place`. So stop servers of the previous version first.

-- An insert that is in progress still runs the old bodies, which would no longer find the functions that they call. This waits for it.
lock table carillon.schedules in share row exclusive mode;

alter function carillon.wall_in(text) rename to enable_row_security;
alter function carillon.require_place(text, text, text, integer) rename to check_quotas;
alter function carillon.require_room(text, text, text, integer, integer) rename to check_quota;
alter function carillon.count_live(text, text, text, integer) rename to count_live_schedules;
alter function carillon.require_places() rename to add_live_schedules;
alter function carillon.note_life() rename to update_live_schedule;
alter function carillon.forget_live() rename to delete_live_schedules;
-- The one row that an API key names by its hash, before its tenant is known.
alter policy shown_key on carillon.api_keys rename to key_by_hash;

alter table carillon.service_turns reset (fillfactor);

create or replace function carillon.create_month(parent text, month date) returns boolean
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  child text := parent || to_char(month, '_YYYY_MM');
  -- Rows of runs are updated two or three times, so their old versions are vacuumed early. Rows of attempts are written once; a
  -- vacuum that comes early and often freezes them while they are still in memory.
  storage text := case parent
    when 'runs' then 'autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0'
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
  perform carillon.enable_row_security(child);
  execute format(
    'alter table carillon.%I attach partition carillon.%I for values from (%L) to (%L)', parent, child,
    to_char(month, 'YYYY-MM-DD"T00:00:00Z"'), to_char(month + interval '1 month', 'YYYY-MM-DD"T00:00:00Z"')
  );
  return true;
end
$$;

-- After an insert of schedules: records those that are active or paused, and fails if a quota has no room for them.
create or replace function carillon.add_live_schedules() returns trigger
  language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  insert into carillon.live_schedules (tenant_id, project_id, owner_subject, schedule_id)
  select added.tenant_id, added.project_id, added.owner_subject, added.id
  from added
  where added.state in ('active', 'paused');
  perform carillon.check_quotas(added.tenant_id, added.project_id, added.owner_subject, count(*)::integer)
  from added
  where added.state in ('active', 'paused')
  group by added.tenant_id, added.project_id, added.owner_subject;
  return null;
end
$$;

-- Fails if the project or the owner has more live schedules than its quota allows. A quota is the tenant's own, otherwise that of the
-- transaction's settings. Without either there is no limit.
create or replace function carillon.check_quotas(tenant text, project text, owner text, added integer) returns void
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
  perform carillon.check_quota(tenant, project, null, in_project, added);
  perform carillon.check_quota(tenant, project, owner, of_user, added);
end
$$;

-- Fails if there are more than `most` live schedules of the project, or of the owner in it. Far from the limit, transactions share the
-- lock: they are at most as many as there are connections, and each adds one schedule. Near the limit a transaction needs the lock
-- exclusively, and counts what all others have committed. If it cannot get the lock at once it fails and starts over: two that waited
-- for each other would never end.
create or replace function carillon.check_quota(tenant text, project text, owner text, most integer, added integer) returns void
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
    -- After the lock is granted: a statement sees what was committed when the statement began.
    live := carillon.count_live_schedules(tenant, project, owner, most + 1);
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
