-- Slots that came due before their schedule was changed, and whose lines are still to be written.
-- Why: a pause, an edit or a deletion wrote the line of every slot that an outage had left behind, in one transaction and with its
-- schedules locked: 216,000 lines in ten seconds. Locks: none, the table is new. Old workers go on; what a new server leaves here
-- waits for a new worker.

-- One row per change and schedule, written in the transaction of the change: no slot lacks both its line and this row (I6). Lines
-- follow in small transactions, and the last of them removes the row.
create table carillon.slot_backlogs (
  schedule_id uuid not null,
  -- The revision under which the slots came due. Its cadence says which they are, and their lines point at it.
  revision integer not null,
  -- The last slot is not later than this.
  until timestamptz not null,
  tenant_id text collate "C" not null,
  project_id text collate "C" not null,
  -- The first slot that has no line yet. The only column that changes.
  next_slot_at timestamptz not null check (next_slot_at = date_trunc('milliseconds', next_slot_at)),
  -- What the lines say, unless a slot is excluded.
  reason carillon.run_reason not null,
  excluded_slots timestamptz[] check (cardinality(excluded_slots) between 1 and 100),
  made_at timestamptz not null,
  -- Unique without a lock of its own: all that is due by an instant is closed by the change that names the instant, so another
  -- change of the same revision finds nothing due until a later one.
  primary key (schedule_id, revision, until),
  foreign key (tenant_id, project_id, schedule_id) references carillon.schedules (tenant_id, project_id, id),
  constraint slot_backlogs_not_empty check (next_slot_at <= until)
);

select carillon.wall_in('slot_backlogs');
grant select, insert, update (next_slot_at), delete on carillon.slot_backlogs to carillon_api;
-- A worker leaves no backlog: it keeps a schedule due until its last line is written.
grant select, update (next_slot_at), delete on carillon.slot_backlogs to carillon_worker;
