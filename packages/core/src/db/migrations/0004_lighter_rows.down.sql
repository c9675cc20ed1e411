drop trigger schedules_removed on carillon.schedules;
drop trigger schedules_lived on carillon.schedules;
drop trigger schedules_lane on carillon.schedules;
drop function carillon.forget_live();
drop function carillon.note_life();
drop function carillon.assign_lane();

create index schedules_live_idx on carillon.schedules (tenant_id, project_id, owner_subject)
  where state in ('active', 'paused');

create or replace function carillon.require_places() returns trigger
  language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  perform carillon.require_place(added.tenant_id, added.project_id, added.owner_subject, count(*)::integer)
  from added
  where added.state in ('active', 'paused')
  group by added.tenant_id, added.project_id, added.owner_subject;
  return null;
end
$$;

create or replace function carillon.count_live(tenant text, project text, owner text, most integer) returns bigint
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

drop table carillon.live_schedules;

alter table carillon.schedules
  drop column lane,
  add constraint schedules_target_kind_check check (target_kind ~ '^[a-z][a-z0-9_]{0,30}$');
alter table carillon.schedules add column lane text collate "C" not null
  generated always as (target_kind || '.' || (hashtext(tenant_id) & 63)::text) stored;
create index schedules_agenda_idx on carillon.schedules (lane, due_at, id) where state = 'active';
