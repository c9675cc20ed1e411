import type pg from 'pg'

/*
 * Triggers that record each violation of an invariant when it happens. Polling from outside would miss most of the states that
 * exist only between two transactions.
 */
const TRIGGERS = `
  create table public.faults (what text not null, run_id uuid not null, noted_at timestamptz not null default clock_timestamp());

  create function public.note_fault() returns trigger language plpgsql security definer set search_path = public, pg_temp as $$
  begin
    if tg_op = 'UPDATE' and old.completed_at is not null then
      insert into faults (what, run_id) values ('a run changed after its end', new.id);
    end if;
    if tg_op = 'UPDATE' and new.token < old.token then
      insert into faults (what, run_id) values ('the token of a run decreased', new.id);
    end if;
    if new.state in ('running', 'detached') and exists (
      select from carillon.runs as other
      where other.schedule_id = new.schedule_id and other.id <> new.id and other.completed_at is null
        and other.state in ('running', 'detached')
    ) and not exists (
      select from carillon.schedule_revisions as revisions
      where revisions.schedule_id = new.schedule_id and revisions.policy ->> 'overlap' = 'allow'
    ) then
      insert into faults (what, run_id) values ('two runs of one schedule were running at once', new.id);
    end if;
    if new.due_at is not null and new.cancel_requested_at is not null and new.state <> 'detached' then
      insert into faults (what, run_id) values ('a run waits although a caller asked to cancel it', new.id);
    end if;
    if tg_op = 'UPDATE' and old.waits_for = 'turn' and new.waits_for = 'worker' and exists (
      select from carillon.runs as other
      where other.schedule_id = new.schedule_id and other.id <> new.id and other.completed_at is null
        and other.waits_for is distinct from 'turn'
    ) and not exists (
      select from carillon.schedules
      join carillon.schedule_revisions as revisions
        on revisions.schedule_id = schedules.id and revisions.revision = schedules.revision
      where schedules.id = new.schedule_id and revisions.policy ->> 'overlap' = 'allow'
    ) then
      insert into faults (what, run_id) values ('a run had its turn before the other runs had ended', new.id);
    end if;
    return null;
  end
  $$;
  create trigger faults after insert or update on carillon.runs for each row execute function public.note_fault();

  -- Checked at the commit, because one transaction ends a run and frees the run that waits for its turn.
  create function public.note_stranded() returns trigger language plpgsql security definer set search_path = public, pg_temp as $$
  begin
    insert into faults (what, run_id)
    select 'a run waits for its turn, but no other run is open', runs.id
    from carillon.runs
    where runs.schedule_id = new.schedule_id and runs.completed_at is null and runs.waits_for = 'turn' and not exists (
      select from carillon.runs as other
      where other.schedule_id = new.schedule_id and other.completed_at is null and other.waits_for is distinct from 'turn'
    );
    insert into faults (what, run_id)
    select 'a run waits for its retry although a later run waits for its turn', runs.id
    from carillon.runs
    where runs.schedule_id = new.schedule_id and runs.completed_at is null and runs.waits_for = 'retry' and exists (
      select from carillon.runs as other
      where other.schedule_id = new.schedule_id and other.completed_at is null and other.waits_for = 'turn'
    );
    insert into faults (what, run_id)
    select 'a run of a deleted schedule waits', runs.id
    from carillon.runs
    join carillon.schedules on schedules.id = runs.schedule_id
    where runs.schedule_id = new.schedule_id and runs.due_at is not null and runs.state <> 'detached'
      and schedules.state = 'deleted';
    return null;
  end
  $$;
  create constraint trigger stranded after insert or update on carillon.runs deferrable initially deferred
    for each row execute function public.note_stranded()`

export async function installFaultTriggers(pool: pg.Pool): Promise<void> {
  await pool.query(TRIGGERS)
}

/** Describes everything that is wrong after all work has ended. The list is empty if the system is sound. */
export async function findFaults(pool: pg.Pool, checks: Readonly<Record<string, string>> = {}): Promise<string[]> {
  const faults: string[] = []
  for (const [what, text] of Object.entries({ ...CHECKS, ...checks })) {
    const { rows } = await pool.query<Record<string, unknown>>(text)
    faults.push(...rows.map((row) => `${what}: ${JSON.stringify(row)}`))
  }
  return faults
}

const CHECKS: Readonly<Record<string, string>> = {
  'while it ran': 'select what, run_id from public.faults',
  'transactions deadlocked': `
    select deadlocks::int from pg_stat_database where datname = current_database() and deadlocks > 0`,
  'a run is stranded': `
    select id, state, waits_for, due_at from carillon.runs where completed_at is null`,
  'run_count is wrong': `
    select schedules.id, schedules.run_count::int, counted.runs::int
    from carillon.schedules
    cross join lateral (
      select count(*) filter (where runs.attempt_count > 0 or runs.completed_at is null) as runs
      from carillon.runs where runs.schedule_id = schedules.id
    ) as counted
    where schedules.run_count <> counted.runs`,
  'failure_count is wrong': `
    select schedules.id, schedules.failure_count::int, counted.runs::int
    from carillon.schedules
    cross join lateral (
      select count(*) as runs from carillon.runs where runs.schedule_id = schedules.id and runs.state = 'failed'
    ) as counted
    where schedules.failure_count <> counted.runs`,
  'attempts do not add up': `
    select runs.id, runs.state, runs.attempt_count, made.attempts
    from carillon.runs
    cross join lateral (
      select coalesce(array_agg(attempts.attempt::int order by attempts.attempt), '{}') as attempts
      from carillon.attempts
      where attempts.schedule_id = runs.schedule_id and attempts.scheduled_for = runs.scheduled_for
    ) as made
    where made.attempts <> array(select generate_series(1, runs.attempt_count))`,
  'the state does not follow from the attempts': `
    select runs.id, runs.state, runs.reason, runs.attempt_count, last.outcome
    from carillon.runs
    left join lateral (
      select attempts.outcome
      from carillon.attempts
      where attempts.schedule_id = runs.schedule_id and attempts.scheduled_for = runs.scheduled_for
      order by attempts.attempt desc
      limit 1
    ) as last on true
    where case runs.state
      when 'succeeded' then last.outcome is distinct from 'succeeded'
      when 'skipped' then runs.attempt_count > 0
      when 'failed' then last.outcome is null or last.outcome = 'succeeded'
      else last.outcome = 'succeeded'
    end`,
  'a slot has no line': `
    select span.schedule_id, slot
    from (
      select changes.schedule_id, changes.next_slot_at,
        lead(changes.changed_at, 1, (select max(changed_at) from carillon.schedule_changes))
          over (partition by changes.schedule_id order by changes.id) as ends_at
      from carillon.schedule_changes as changes
    ) as span
    cross join lateral generate_series(span.next_slot_at, span.ends_at, interval '1 minute') as slot
    where span.next_slot_at is not null
      and not exists (
        select from carillon.runs where runs.schedule_id = span.schedule_id and runs.scheduled_for = slot
      )`,
}
