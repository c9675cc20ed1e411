-- Modules: each has a history of migrations of its own, tables behind row-level security, and reasons of its own for refused runs.
-- Why: a kind of target may bring tables, and a database must say which version of which module made them. A table of its own instead of a
-- column of `migrations`: a version that knows no modules reads `migrations`, and would take the first migration of a module for a gap.
-- Locks: none that a reader or writer waits for. Old workers and servers go on: nothing of theirs changes.

-- What the audit found by a check of a module. Used once this is committed.
alter type finding_kind add value if not exists 'module_check';

create table modules (
  name text collate "C" primary key check (name ~ '^[a-z][a-z0-9_]{0,30}$'),
  -- Every reason that the module ever declared. The type `run_reason` has them, and a type forgets no word.
  reasons text[] collate "C" not null default '{}',
  -- Its tables, functions and permissions as its last migration left them: `carillon doctor` compares. Null without a migration.
  objects text,
  updated_at timestamptz not null
);

create table module_migrations (
  module text collate "C" not null references modules (name),
  number integer not null check (number > 0),
  name text not null,
  checksum text not null,
  applied_at timestamptz not null,
  primary key (module, number)
);

-- As before, and for a table of a module one policy more. `migrate` names the module in `carillon.module`. A worker sees all tenants, because
-- one batch holds runs of many. In a transaction that names a tenant and a project, it sees only their rows in the tables of modules.
create or replace function enable_row_security(relation text) returns void
  language plpgsql set search_path from current as $$
declare
  scope constant text := $policy$tenant_id = nullif(current_setting('carillon.tenant_id', true), '')
      and project_id = nullif(current_setting('carillon.project_id', true), '')$policy$;
begin
  execute format('alter table %I enable row level security', relation);
  execute format('alter table %I force row level security', relation);
  execute format(
    'create policy tenant_wall on %I to %I using (%3$s) with check (%3$s)', relation, current_schema() || '_api', scope
  );
  execute format(
    'create policy pipeline on %I to %I using (true) with check (true)', relation, current_schema() || '_worker'
  );
  if nullif(current_setting('carillon.module', true), '') is not null then
    execute format(
      $policy$create policy pipeline_scope on %I as restrictive to %I
        using (nullif(current_setting('carillon.tenant_id', true), '') is null or %3$s)
        with check (nullif(current_setting('carillon.tenant_id', true), '') is null or %3$s)$policy$,
      relation, current_schema() || '_worker', scope
    );
  end if;
end
$$;

do $$
begin
  execute format('grant select on modules, module_migrations to %I, %I', current_schema() || '_api', current_schema() || '_worker');
end
$$;
