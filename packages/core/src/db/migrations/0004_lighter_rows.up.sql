-- Less to write for each slot: a lane that is set once, a kind that is checked once, and counting that costs the pipeline nothing.
-- Why: each slot rewrites the row of its schedule, and paid for all three (docs/decisions/0007). Locks: schedules exclusively, for
-- as long as reading it once takes. Old workers and servers go on: triggers write what they do not.

-- Postgres reads the expression of a generated column anew for every row of an update that does not even touch it: a sixth of
-- what a slot cost the row of its schedule. A pattern is as dear, and was matched at every slot.
alter table carillon.schedules alter column lane drop expression;
alter table carillon.schedules drop constraint schedules_target_kind_check;

create function carillon.assign_lane() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
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

create trigger schedules_lane before insert or update of target_kind on carillon.schedules
  for each row execute function carillon.assign_lane();

-- Whose schedules count against a limit: those that are active or paused. An index of schedules said the same, and every slot
-- wrote to it, for an update that changes one indexed column writes to all indexes. Kept by triggers, so that no writer can
-- forget it.
create table carillon.live_schedules (
  tenant_id text collate "C" not null,
  project_id text collate "C" not null,
  owner_subject text collate "C" not null,
  schedule_id uuid not null,
  primary key (tenant_id, project_id, owner_subject, schedule_id)
);
insert into carillon.live_schedules (tenant_id, project_id, owner_subject, schedule_id)
select tenant_id, project_id, owner_subject, id
from carillon.schedules
where state in ('active', 'paused');
drop index carillon.schedules_live_idx;

select carillon.wall_in('live_schedules');
grant select, insert, delete on carillon.live_schedules to carillon_api, carillon_worker;

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

create function carillon.note_life() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if new.state in ('active', 'paused') then
    insert into carillon.live_schedules (tenant_id, project_id, owner_subject, schedule_id)
    values (new.tenant_id, new.project_id, new.owner_subject, new.id);
  else
    delete from carillon.live_schedules as live
    where live.tenant_id = old.tenant_id and live.project_id = old.project_id and live.owner_subject = old.owner_subject
      and live.schedule_id = old.id;
  end if;
  return null;
end
$$;

-- A slot that leaves its schedule active, as nearly all do, calls nothing: the condition is the trigger's own.
create trigger schedules_lived after update of state on carillon.schedules
  for each row when ((old.state in ('active', 'paused')) <> (new.state in ('active', 'paused')))
  execute function carillon.note_life();

create function carillon.forget_live() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  delete from carillon.live_schedules as live
  using gone
  where live.tenant_id = gone.tenant_id and live.project_id = gone.project_id
    and live.owner_subject = gone.owner_subject collate "C" and live.schedule_id = gone.id;
  return null;
end
$$;

create trigger schedules_removed after delete on carillon.schedules
  referencing old table as gone for each statement execute function carillon.forget_live();

create or replace function carillon.count_live(tenant text, project text, owner text, most integer) returns bigint
  language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if owner is null then
    return (
      select count(*)
      from (
        select
        from carillon.live_schedules
        where tenant_id = tenant and project_id = project
        limit most
      ) as live
    );
  end if;
  return (
    select count(*)
    from (
      select
      from carillon.live_schedules
      where tenant_id = tenant and project_id = project and owner_subject = owner
      limit most
    ) as live
  );
end
$$;

revoke all on function carillon.assign_lane(), carillon.note_life(), carillon.forget_live() from public;
