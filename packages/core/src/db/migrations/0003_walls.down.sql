-- The roles stay: other databases of the server may use them. So do the words of changes: no type forgets one.
drop trigger schedules_inserted on carillon.schedules;
drop function carillon.require_places();
drop function carillon.require_place(text, text, text, integer);
drop function carillon.require_room(text, text, text, integer, integer);
drop function carillon.count_live(text, text, text, integer);
drop function carillon.request_jobs(json);
drop function carillon.withdraw_jobs(json);
drop function carillon.request_audit(integer);
drop function carillon.require_own(uuid[]);
drop function carillon.create_month(text, date);
drop function carillon.drop_month(text);
drop function carillon.lock_months();
drop function carillon.wall_in(text);

do $$
declare
  policy record;
  walled text;
begin
  for policy in
    select polname, polrelid::regclass as relation
    from pg_catalog.pg_policy
    join pg_catalog.pg_class on pg_class.oid = polrelid
    where relnamespace = 'carillon'::regnamespace
  loop
    execute format('drop policy %I on %s', policy.polname, policy.relation);
  end loop;
  for walled in
    select pg_class.oid::regclass::text
    from pg_catalog.pg_class
    where relnamespace = 'carillon'::regnamespace and relrowsecurity
  loop
    execute format('alter table %s no force row level security, disable row level security', walled);
  end loop;
end
$$;
revoke all on all tables in schema carillon from carillon_api, carillon_worker;
revoke all on all sequences in schema carillon from carillon_api, carillon_worker;
revoke usage on schema carillon from carillon_api, carillon_worker;

alter table carillon.schedules drop constraint schedules_not_of_the_platform;
drop index carillon.schedules_live_idx;
drop index carillon.execution_grants_expiry_idx;
drop index carillon.execution_grants_schedule_idx;
alter table carillon.schedules alter column grant_id drop not null;
alter table carillon.schedule_revisions alter column grant_id drop not null;
-- What was made for one schedule goes; a schedule of before knows no such grant.
update carillon.schedules set grant_id = null
from carillon.execution_grants as grants
where grants.id = schedules.grant_id and grants.schedule_id is not null;
update carillon.schedule_revisions set grant_id = null
from carillon.execution_grants as grants
where grants.id = schedule_revisions.grant_id and grants.schedule_id is not null;
delete from carillon.execution_grants where schedule_id is not null;
drop index carillon.schedule_revisions_grant_idx;
-- Of two who chose the same key in a project the later answer stays.
delete from carillon.idempotent_answers as answers
using carillon.idempotent_answers as later
where later.tenant_id = answers.tenant_id and later.project_id = answers.project_id and later.key = answers.key
  and (later.answered_at, later.subject) > (answers.answered_at, answers.subject);
set constraints all immediate;
alter table carillon.idempotent_answers
  drop constraint idempotent_answers_pkey,
  drop column subject,
  add primary key (tenant_id, project_id, key);
alter table carillon.schedules add constraint schedules_tenant_id_project_id_grant_id_fkey
  foreign key (tenant_id, project_id, grant_id) references carillon.execution_grants (tenant_id, project_id, id);
alter table carillon.execution_grants drop column schedule_id, drop column warned_at;
alter table carillon.schedule_revisions drop column required_scope;
drop table carillon.feed_floor;
drop table carillon.secrets;
drop table carillon.members;
drop table carillon.tenants;
