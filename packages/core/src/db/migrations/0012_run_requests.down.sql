-- The version before has no word for these changes.
delete from schedule_changes where change in ('run_requested', 'run_cancelled');
alter table schedule_changes drop column scheduled_for;

-- A type forgets no word, so another type takes its place.
alter type schedule_change rename to schedule_change_after;
create type schedule_change as enum (
  'created', 'edited', 'paused', 'resumed', 'completed', 'deleted', 'slot_skipped', 'slot_restored', 'grant_expiring', 'grant_revoked',
  'grant_renewed'
);
alter table schedule_changes alter column change type schedule_change using change::text::schedule_change;
drop type schedule_change_after;
