-- All transcripts are lost. The version before records none.
drop table transcripts;

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
