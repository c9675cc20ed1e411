-- Pages of schedules and runs are filled completely; before, 40 % of each page was left free for new versions of its rows.
-- Why: the free space is for updates that change no indexed column (HOT). Every slot moves its schedule to another due_at and its run to
-- another state, which are indexed, so these updates are never HOT: `npm run bench:compare` found no work that the space makes faster.
-- An update of a schedule's failure count alone could be HOT. How fast failing targets drain with and without the space was not measured.
-- Locks: `share update exclusive` on schedules and on each month of runs, for a moment; reads and writes go on. No page is rewritten.

alter table carillon.schedules reset (fillfactor);

do $$
declare
  child regclass;
begin
  for child in select inhrelid from pg_catalog.pg_inherits where inhparent = 'carillon.runs'::regclass loop
    execute format('alter table %s reset (fillfactor)', child);
  end loop;
end
$$;

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
