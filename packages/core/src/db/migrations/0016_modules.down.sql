-- The version before has no modules, so their tables must be gone. `carillon migrate down` reverts the migrations of the modules that are
-- configured before it comes here. The words that modules added to `run_reason` stay.
do $$
declare
  present text;
begin
  select string_agg(distinct module, ', ' order by module) into present from module_migrations;
  if present is not null then
    raise exception 'expected no module with migrations, got %: run "carillon migrate down --module <name> --to 0" first', present using
      errcode = 'CA004';
  end if;
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

drop table module_migrations;
drop table modules;

-- A type forgets no word, so another type takes its place. A function that returns the type goes and comes back.
delete from audit_findings where kind = 'module_check';
drop function list_unowned_findings(integer);
alter type finding_kind rename to finding_kind_after;
create type finding_kind as enum (
  'slot_lost', 'slot_unknown', 'schedule_past_due', 'run_without_lease', 'run_stuck', 'attempt_missing', 'revision_missing',
  'run_contradicted', 'count_wrong'
);
alter table audit_findings alter column kind type finding_kind using kind::text::finding_kind;
drop type finding_kind_after;

create function list_unowned_findings(most integer) returns table(audit_id uuid, found_at timestamp with time zone, seen_at timestamp with time zone, kind finding_kind, schedule_id uuid, scheduled_for timestamp with time zone, detail text, is_repaired boolean)
  language sql stable security definer set search_path from current as $$
  select findings.audit_id, findings.found_at, audits.completed_at, findings.kind, findings.schedule_id, findings.scheduled_for,
    findings.detail, findings.is_repaired
  from audit_findings as findings
  join audits on audits.id = findings.audit_id
  where findings.tenant_id is null
  order by findings.audit_id desc, findings.ordinal
  limit most
$$;
revoke all on function list_unowned_findings(integer) from public;
do $$
begin
  execute format('grant execute on function list_unowned_findings(integer) to %I', current_schema() || '_api');
end
$$;
