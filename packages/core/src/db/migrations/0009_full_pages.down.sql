alter table carillon.schedules set (fillfactor = 60);

do $$
declare
  child regclass;
begin
  for child in select inhrelid from pg_catalog.pg_inherits where inhparent = 'carillon.runs'::regclass loop
    execute format('alter table %s set (fillfactor = 60)', child);
  end loop;
end
$$;

create or replace function carillon.create_month(parent text, month date) returns boolean
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
