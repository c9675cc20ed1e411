drop index schedule_changes_run_idx;
drop index schedule_changes_slots_idx;
