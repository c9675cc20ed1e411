-- Two indexes that separate the lines of single runs in the history of a schedule (a run was requested or cancelled) from its other lines.
-- Why: a program may request a run every second. The audit read all these lines again for each comparison of the schedule, and nothing
-- deleted them. Only these lines have a `scheduled_for`.
-- Locks: schedule_changes against writes, for as long as reading it twice takes. Creates, edits and run-nows wait, and so does a slot that
-- completes its schedule; other slots do not. Old workers and servers go on.

-- Serves the audit: the lines of a schedule that may change its slots, in order.
create index schedule_changes_slots_idx on schedule_changes (schedule_id, id) where scheduled_for is null;
-- Serves upkeep, which deletes the lines of runs that the ledger has dropped.
create index schedule_changes_run_idx on schedule_changes (scheduled_for) where scheduled_for is not null;
