alter table carillon.schedule_revisions reset (autovacuum_vacuum_insert_scale_factor);
drop index carillon.schedule_revisions_name_idx;
