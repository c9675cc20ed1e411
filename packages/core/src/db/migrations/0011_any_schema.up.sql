-- Functions find Carillon's tables by their search path instead of by the name of its schema, so the schema may have any name.
-- Why: two Carillons in one Postgres. Up to here the migrations name the schema `carillon`, which is replaced where it has another name
-- (db/migration-history.ts). From here on no statement names it.
-- Roles, channels and the keys of advisory locks are made from the schema's name. For `carillon` they stay the same, so workers and servers
-- of the version before go on.
-- Locks: none beyond the functions themselves.

-- `set search_path from current` keeps the path that migrations run with: the schema, and temporary tables last. Otherwise a caller of a
-- function that acts with other permissions could put a table or type of its own in the place of ours.

create or replace function add_live_schedules() returns trigger
  language plpgsql set search_path from current as $$
begin
  insert into live_schedules (tenant_id, project_id, owner_subject, schedule_id)
  select added.tenant_id, added.project_id, added.owner_subject, added.id
  from added
  where added.state in ('active', 'paused');
  perform check_quotas(added.tenant_id, added.project_id, added.owner_subject, count(*)::integer)
  from added
  where added.state in ('active', 'paused')
  group by added.tenant_id, added.project_id, added.owner_subject;
  return null;
end
$$;

create or replace function assign_lane() returns trigger
  language plpgsql set search_path from current as $$
begin
  if new.target_kind !~ '^[a-z][a-z0-9_]{0,30}$' then
    raise exception 'expected a kind of target such as http, got "%"', new.target_kind using
      errcode = 'check_violation', constraint = 'schedules_target_kind_check', table = 'schedules', schema = current_schema();
  end if;
  new.lane := lane_of(new.target_kind, new.tenant_id);
  return new;
end
$$;

create or replace function check_quota(tenant text, project text, owner text, most integer, added integer) returns void
  language plpgsql set search_path from current as $$
declare
  space constant integer := 211947794 # hashtext(current_schema()) # hashtext('carillon');
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
    live := count_live_schedules(tenant, project, owner, most + 1);
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

create or replace function check_quotas(tenant text, project text, owner text, added integer) returns void
  language plpgsql set search_path from current as $$
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
  left join tenants on tenants.tenant_id = tenant;
  perform check_quota(tenant, project, null, in_project, added);
  perform check_quota(tenant, project, owner, of_user, added);
end
$$;

create or replace function count_live_schedules(tenant text, project text, owner text, most integer) returns bigint
  language plpgsql set search_path from current as $$
begin
  if owner is null then
    return (
      select count(*)
      from (
        select
        from live_schedules
        where tenant_id = tenant and project_id = project
        limit most
      ) as live
    );
  end if;
  return (
    select count(*)
    from (
      select
      from live_schedules
      where tenant_id = tenant and project_id = project and owner_subject = owner
      limit most
    ) as live
  );
end
$$;

create or replace function create_month(parent text, month date) returns boolean
  language plpgsql security definer set search_path from current as $$
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

create or replace function delete_live_schedules() returns trigger
  language plpgsql set search_path from current as $$
begin
  delete from live_schedules as live
  using gone
  where live.tenant_id = gone.tenant_id and live.project_id = gone.project_id
    and live.owner_subject = gone.owner_subject collate "C" and live.schedule_id = gone.id;
  return null;
end
$$;

create or replace function drop_month(month date) returns boolean
  language plpgsql security definer set search_path from current as $$
declare
  suffix text := to_char(month, '_YYYY_MM');
  runs regclass := to_regclass(format('%I', 'runs' || suffix));
  attempts regclass := to_regclass(format('%I', 'attempts' || suffix));
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
  return runs is not null or attempts is not null;
end
$$;

create or replace function enable_row_security(relation text) returns void
  language plpgsql set search_path from current as $$
begin
  execute format('alter table %I enable row level security', relation);
  execute format('alter table %I force row level security', relation);
  execute format(
    'create policy tenant_wall on %I to %I using (%3$s) with check (%3$s)', relation, current_schema() || '_api',
    $policy$tenant_id = nullif(current_setting('carillon.tenant_id', true), '')
      and project_id = nullif(current_setting('carillon.project_id', true), '')$policy$
  );
  execute format(
    'create policy pipeline on %I to %I using (true) with check (true)', relation, current_schema() || '_worker'
  );
end
$$;

create or replace function list_unowned_findings(most integer) returns table(audit_id uuid, found_at timestamp with time zone, seen_at timestamp with time zone, kind finding_kind, schedule_id uuid, scheduled_for timestamp with time zone, detail text, is_repaired boolean)
  language sql stable security definer set search_path from current as $$
  select findings.audit_id, findings.found_at, audits.completed_at, findings.kind, findings.schedule_id, findings.scheduled_for,
    findings.detail, findings.is_repaired
  from audit_findings as findings
  join audits on audits.id = findings.audit_id
  where findings.tenant_id is null
  order by findings.audit_id desc, findings.ordinal
  limit most
$$;

create or replace function lock_months() returns void
  language plpgsql set search_path from current as $$
begin
  perform set_config('lock_timeout', '1000', true);
  perform pg_advisory_xact_lock(211947792 # hashtext(current_schema()) # hashtext('carillon'), 2);
end
$$;

create or replace function note_runs() returns trigger
  language plpgsql set search_path from current as $$
begin
  insert into feed_entries (tenant_id, project_id, kind, schedule_ids, slots, changes)
  select changed.tenant_id, changed.project_id, 'run', array_agg(changed.schedule_id), array_agg(changed.scheduled_for),
    array_agg(changed.state::text)
  from changed
  group by changed.tenant_id, changed.project_id;
  return null;
end
$$;

create or replace function note_schedules() returns trigger
  language plpgsql set search_path from current as $$
begin
  insert into feed_entries (tenant_id, project_id, kind, schedule_ids, changes)
  select changed.tenant_id, changed.project_id, 'schedule', array_agg(changed.schedule_id order by changed.id),
    array_agg(changed.change::text order by changed.id)
  from changed
  group by changed.tenant_id, changed.project_id;
  return null;
end
$$;

create or replace function request_audit(asked_at timestamp with time zone) returns void
  language plpgsql security definer set search_path from current as $$
begin
  insert into service_turns as turns (name, next_at, requested_at)
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

create or replace function update_live_schedule() returns trigger
  language plpgsql set search_path from current as $$
begin
  if new.state in ('active', 'paused') then
    insert into live_schedules (tenant_id, project_id, owner_subject, schedule_id)
    values (new.tenant_id, new.project_id, new.owner_subject, new.id);
  else
    delete from live_schedules as live
    where live.tenant_id = old.tenant_id and live.project_id = old.project_id and live.owner_subject = old.owner_subject
      and live.schedule_id = old.id;
  end if;
  return null;
end
$$;
