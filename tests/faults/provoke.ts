import type { Rig } from './scenario.ts'

/**
 * Makes workers send rare statements: one worker drains and stops, another one is killed and its runs are rescued, and both are started
 * again. An audit is requested, upkeep finds a month to create and a month to drop, and an API server leaves a backlog.
 */
export async function provoke({ fleet, workload }: Rig, turn: number): Promise<void> {
  // At least one worker must stay to rescue the runs.
  if (fleet.started > 1 && turn % 2 === 0) fleet.retire()
  if (fleet.started > 1 && turn % 2 === 1) fleet.kill()
  await workload.pool.query(UPKEEP_HAS_WORK)
  await workload.pool.query(turn % 4 === 3 ? TURNS_ARE_NEW : TURNS_ARE_FREE)
  await workload.pool.query(BACKLOG_IS_LEFT)
  await workload.scheduler.requestAudit()
}

/** Neither month contains a line. If another transaction holds locks on the ledger for long, this gives up until the next call. */
const UPKEEP_HAS_WORK = `
  do $$
  declare
    future text := to_char(now() + interval '2 months', '_YYYY_MM');
  begin
    set local lock_timeout = '500ms';
    perform carillon.create_month('runs', date '2025-01-01'), carillon.create_month('attempts', date '2025-01-01');
    execute format('drop table if exists carillon.%I', 'runs' || future);
    execute format('drop table if exists carillon.%I', 'attempts' || future);
  exception when lock_not_available or deadlock_detected then
    null;
  end $$`

/** Without this, a service whose turn a fault has interrupted rests for a minute, and keeps its turn meanwhile. */
const TURNS_ARE_FREE = whereThere(
  'service_turns',
  'update carillon.service_turns set next_at = now(), worker_id = null, until = null',
)
/** As on a new database, where no service has had a turn. */
const TURNS_ARE_NEW = whereThere('service_turns', 'delete from carillon.service_turns')

/**
 * Creates the state after an API server died right after a change: the line of a skipped slot is missing, and the backlog lists it. The
 * verdict expects the line to be written.
 */
const BACKLOG_IS_LEFT = whereThere(
  'slot_backlogs',
  `with line as (
    select schedule_id, scheduled_for
    from carillon.runs
    where state = 'skipped' and trigger = 'schedule' and scheduled_for > now() - interval '1 minute'
    order by scheduled_for desc
    limit 1
  ), removed as (
    delete from carillon.runs
    using line
    where runs.schedule_id = line.schedule_id and runs.scheduled_for = line.scheduled_for
    returning runs.*
  )
  insert into carillon.slot_backlogs (schedule_id, revision, until, tenant_id, project_id, next_slot_at, reason, made_at)
  select schedule_id, revision, scheduled_for, tenant_id, project_id, scheduled_for, reason, now() from removed`,
)

/** Older versions do not have the table. */
function whereThere(table: string, statement: string): string {
  return `do $$ begin if to_regclass('carillon.${table}') is not null then ${statement}; end if; end $$`
}
