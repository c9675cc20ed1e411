-- The names of a project in the order of its list, so that a page reads its own rows and a search nothing but names besides.
-- Why: a page could read three rows, of three tables, for each schedule of its project (docs/decisions/0007). Locks:
-- schedule_revisions against writes, for as long as reading it once takes: creates and edits wait, slots do not. Old workers and
-- servers go on.

-- Serves lists and searches. Of revisions, which are written once: a slot, which rewrites the row of its schedule, writes nothing
-- here. The name goes with it, so that one that does not match costs no look at its row.
create index schedule_revisions_name_idx on carillon.schedule_revisions (tenant_id, project_id, schedule_id, revision)
  include (name);

-- An index alone answers only for rows that a vacuum has seen. They are written once, so each is vacuumed once.
alter table carillon.schedule_revisions set (autovacuum_vacuum_insert_scale_factor = 0.05);
