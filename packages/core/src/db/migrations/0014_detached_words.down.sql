-- A type forgets no word, so another type takes its place. The checks that name states go with the old type and come back.
alter table runs
  drop constraint runs_running_has_worker,
  drop constraint runs_skipped_says_why,
  drop constraint runs_terminal_is_completed,
  drop constraint runs_waiting_says_when,
  drop constraint runs_waits_as_its_state_says;

alter type run_state rename to run_state_after;
create type run_state as enum ('pending', 'running', 'retrying', 'succeeded', 'failed', 'cancelled', 'skipped');
alter table runs alter column state type run_state using state::text::run_state;
drop type run_state_after;

alter type attempt_outcome rename to attempt_outcome_after;
create type attempt_outcome as enum ('succeeded', 'failed', 'cancelled', 'malformed', 'lost');
alter table attempts alter column outcome type attempt_outcome using outcome::text::attempt_outcome;
drop type attempt_outcome_after;

alter table runs
  add constraint runs_running_has_worker check ((state = 'running') = (worker_id is not null)),
  add constraint runs_skipped_says_why check (state <> 'skipped' or reason is not null),
  add constraint runs_terminal_is_completed check (
    (state in ('succeeded', 'failed', 'cancelled', 'skipped')) = (completed_at is not null)
  ),
  add constraint runs_waiting_says_when check (
    (due_at is not null) = (completed_at is null and state <> 'running')
    and (due_at is null) = (waits_for is null) and (due_at is null) = (lane is null)
    and (waits_for = 'turn') = (due_at = 'infinity')
  ),
  add constraint runs_waits_as_its_state_says check (
    case state
      when 'pending' then waits_for in ('turn', 'worker', 'deferred') and attempt_count = 0
      when 'retrying' then waits_for in ('worker', 'retry', 'deferred') and attempt_count > 0
      else waits_for is null
    end
  );
