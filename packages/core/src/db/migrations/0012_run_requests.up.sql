-- The history of a schedule names who requested a run and who cancelled one.
-- Why: run-now and cancel changed the ledger only, so no caller could read who did it. Locks: schedule_changes exclusively, for a moment.
-- Old workers and servers go on: they name the columns that they write, so the new one stays null.

alter type schedule_change add value if not exists 'run_requested';
alter type schedule_change add value if not exists 'run_cancelled';

-- The slot of the run that was requested or cancelled; null for every other change.
alter table schedule_changes add column scheduled_for timestamptz;
