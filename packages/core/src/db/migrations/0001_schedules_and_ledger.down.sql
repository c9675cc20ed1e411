-- Takes everything away, the ledger included.

drop table carillon.audit_findings;
drop table carillon.audits;
drop table carillon.workers;
drop table carillon.attempts;
drop table carillon.runs;
drop table carillon.schedule_changes;
drop table carillon.schedule_revisions;
drop table carillon.schedules;
drop table carillon.execution_grants;
drop type carillon.finding_kind;
drop type carillon.attempt_outcome;
drop type carillon.run_reason;
drop type carillon.run_state;
drop type carillon.run_trigger;
drop type carillon.cadence_kind;
drop type carillon.schedule_change;
drop type carillon.schedule_state;
