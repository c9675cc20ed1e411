lock table carillon.schedules in share row exclusive mode;

alter function carillon.enable_row_security(text) rename to wall_in;
alter function carillon.check_quotas(text, text, text, integer) rename to require_place;
alter function carillon.check_quota(text, text, text, integer, integer) rename to require_room;
alter function carillon.count_live_schedules(text, text, text, integer) rename to count_live;
alter function carillon.add_live_schedules() rename to require_places;
alter function carillon.update_live_schedule() rename to note_life;
alter function carillon.delete_live_schedules() rename to forget_live;
alter policy key_by_hash on carillon.api_keys rename to shown_key;

alter table carillon.service_turns set (fillfactor = 50);

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
  perform carillon.wall_in(child);
  execute format(
    'alter table carillon.%I attach partition carillon.%I for values from (%L) to (%L)', parent, child,
    to_char(month, 'YYYY-MM-DD"T00:00:00Z"'), to_char(month + interval '1 month', 'YYYY-MM-DD"T00:00:00Z"')
  );
  return true;
end
$$;

create or replace function carillon.require_places() returns trigger
  language plpgsql set search_path = pg_catalog, pg_temp as $$
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
$$;

create or replace function carillon.require_place(tenant text, project text, owner text, added integer) returns void
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

create or replace function carillon.require_room(tenant text, project text, owner text, most integer, added integer) returns void
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
