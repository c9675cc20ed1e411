drop function carillon.list_unowned_findings(integer);

alter table carillon.workers drop column full_at;

drop index carillon.audits_repairs_idx;
alter table carillon.audits drop column is_whole, drop column lost_count;

drop index carillon.audit_findings_schedule_idx;
-- What the version before has no word for.
delete from carillon.audit_findings
where kind in ('attempt_missing', 'revision_missing', 'run_contradicted', 'count_wrong');
alter type carillon.finding_kind rename to finding_kind_after;
create type carillon.finding_kind as enum (
  'slot_lost', 'slot_unknown', 'schedule_past_due', 'run_without_lease', 'run_without_job', 'job_without_run'
);
alter table carillon.audit_findings
  drop column found_at,
  alter column kind type carillon.finding_kind
    using (case kind when 'run_stuck' then 'run_without_job' else kind::text end)::carillon.finding_kind;
drop type carillon.finding_kind_after;

drop function carillon.request_audit(timestamptz);
drop table carillon.service_turns;

create function carillon.request_audit(max_attempts integer) returns void
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform carillon_jobs.add_job('upkeep.audit', '{}'::json, job_key => 'upkeep.audit', max_attempts => request_audit.max_attempts);
end
$$;
grant create on schema carillon to carillon_worker;
alter function carillon.request_audit(integer) owner to carillon_worker;
revoke create on schema carillon from carillon_worker;
revoke all on function carillon.request_audit(integer) from public;
grant execute on function carillon.request_audit(integer) to carillon_api;
