-- How often each project was counted. Locks: none. Old workers go on.
create table tally_counts (
  tenant_id text collate "C" not null,
  project_id text collate "C" not null,
  count integer not null,
  primary key (tenant_id, project_id)
);
select enable_row_security('tally_counts');
do $$
begin
  execute format(
    'grant select, insert, update, delete on tally_counts to %I, %I', current_schema() || '_api', current_schema() || '_worker'
  );
end
$$;
