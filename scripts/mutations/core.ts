import type { Mutation } from './mutation.ts'

const MIGRATION = 'store/migrations/0001_schedules_and_ledger.up.sql'

/** Each of these must turn a test red: `npm run test:mutations -- core`. */
export const CORE_MUTATIONS: readonly Mutation[] = [
  {
    guard: 'I1: the CHECK that an active schedule has a next slot, and no other has',
    file: MIGRATION,
    from: "check ((state = 'active') = (next_slot_at is not null))",
    to: 'check (true)',
    tests: ['tests/schema/constraints.test.ts'],
  },
  {
    guard: 'I2: the unique key of a slot in the ledger',
    file: MIGRATION,
    from: '  primary key (schedule_id, scheduled_for),\n  constraint runs_terminal_is_completed',
    to: '  constraint runs_terminal_is_completed',
    tests: ['tests/schema/constraints.test.ts'],
  },
  {
    guard: 'I2, I3: the row lock of a claim',
    file: 'store/agenda.ts',
    from: '      for update skip locked\n',
    to: '',
    tests: ['tests/concurrency.test.ts'],
  },
  {
    guard: 'I3: begin moves the schedule on',
    file: 'store/begin.ts',
    from: 'next_slot_at = advance.next_slot_at,',
    to: 'next_slot_at = coalesce(schedules.next_slot_at, advance.next_slot_at),',
    tests: ['tests/keeper.test.ts'],
  },
  {
    guard: 'I4: the retry is enqueued in the transaction that settles',
    file: 'settle-batch.ts',
    from: 'await jobs.enqueue(tx, [...retries,',
    to: 'void db.transaction().execute((other) => jobs.enqueue(other, retries)).catch(() => undefined)\n    await jobs.enqueue(tx, [',
    tests: ['tests/settle-atomic.test.ts'],
  },
  {
    guard: 'I5: an attempt says what the revision that began its run says',
    file: 'store/taken-run.ts',
    from: 'on revisions.schedule_id = taken.schedule_id and revisions.revision = taken.revision',
    to: `on revisions.schedule_id = taken.schedule_id and revisions.revision = (
        select max(latest.revision) from carillon.schedule_revisions as latest
        where latest.schedule_id = taken.schedule_id
      )`,
    tests: ['tests/retry-identity.test.ts'],
  },
  {
    guard: 'I6: what is due leaves its line before the schedule is paused',
    file: 'facade/scheduler.ts',
    from: "await this.#closeDue(tx, schedule, 'paused', now)",
    to: '',
    tests: ['tests/lifecycle-pause.test.ts'],
  },
  {
    guard: 'I6: every missed slot leaves its line',
    file: 'keeper/begin-plan.ts',
    from: 'const lines = skipped.map(',
    to: "const lines = skipped.filter(({ reason }) => reason !== 'missed').map(",
    tests: ['tests/missed.test.ts'],
  },
  {
    guard: 'I9: a schedule is found within its project only',
    file: 'store/schedule-records.ts',
    from: 'where schedules.id = ${p.id} and schedules.tenant_id = ${p.tenantId} and schedules.project_id = ${p.projectId}',
    to: 'where schedules.id = ${p.id}',
    tests: ['tests/lifecycle-create.test.ts'],
  },
  {
    guard: 'I10: a claim takes nothing that is not due by the clock of Postgres',
    file: 'store/agenda.ts',
    from: 'and schedules.due_at <= ${nowOf(p.now)}\n      order by schedules.due_at, schedules.id',
    to: "and schedules.due_at <= ${nowOf(p.now)} + interval '1 hour'\n      order by schedules.due_at, schedules.id",
    tests: ['tests/postgres-time.test.ts'],
  },
  {
    guard: 'I11: of many missed slots at most one runs',
    file: 'policy/missed.ts',
    from: 'return { missed: due.slice(0, -1), run: latest }',
    to: 'return { missed: due.slice(0, -2), run: latest }',
    tests: ['src/policy'],
  },
  {
    guard: 'I12: the token of the fence',
    file: 'store/settle.ts',
    from: '        and runs.token = settlement.token\n',
    to: '',
    tests: ['tests/fencing.test.ts'],
  },
  {
    guard: 'I12: the holder in the fence',
    file: 'store/settle.ts',
    from: '        and runs.worker_id = settlement.worker_id\n',
    to: '',
    tests: ['tests/fencing.test.ts'],
  },
  {
    guard: 'I12: a worker without a lease claims nothing',
    file: 'store/agenda.ts',
    from: 'where workers.id = ${p.workerId} and workers.lease_expires_at > ${nowOf(p.now)}',
    to: 'where true',
    tests: ['tests/fencing.test.ts'],
  },
  {
    guard: 'a rescued attempt counts as one',
    file: 'settlement.ts',
    from: "{ ...base, state: 'retrying', outcome: 'lost', retryInMs: 0, error: errorText(LOST) }",
    to: "{ ...base, state: 'retrying', outcome: null, retryInMs: 0, error: errorText(LOST) }",
    tests: ['tests/rescue.test.ts'],
  },
  {
    guard: 'an attempt that is handed back is not charged',
    file: 'settlement.ts',
    from: "return { ...base, state: 'retrying', outcome: null, retryInMs: 0 }",
    to: "return { ...base, state: 'retrying', outcome: 'lost', retryInMs: 0 }",
    tests: ['tests/drain.test.ts'],
  },
  {
    guard: 'auto-pause is settled with the failure that causes it',
    file: 'store/settle.ts',
    from: "state = case when pause.is_due then 'paused' else schedules.state end,",
    to: 'state = schedules.state,',
    tests: ['tests/auto-pause.test.ts'],
  },
  {
    guard: 'a broken connection is not lent again',
    file: 'store/pool.ts',
    from: 'giveBack(reason ?? this.#broken.get(client) ?? false)',
    to: 'giveBack(reason ?? false)',
    tests: ['tests/pool.test.ts'],
  },
  {
    guard: 'an edit that somebody else overtook is refused',
    file: 'facade/scheduler.ts',
    from: 'if (revision !== undefined && revision !== schedule.revision) {',
    to: 'if (revision === -1) {',
    tests: ['tests/lifecycle-edit.test.ts'],
  },
  {
    guard: 'I12: an answer that comes too late does not take a lease up again',
    file: 'services/heartbeat.ts',
    from: 'if (lease.workerId !== id) return false',
    to: '',
    tests: ['tests/heartbeat.test.ts'],
  },
  {
    guard: 'I12: a lease that runs out stops what is held under it',
    file: 'lease.ts',
    from: 'this.#stopTimer = this.#clock.after(this.#trustedUntilMs - this.#clock.monotonicMs(), () => this.lose())',
    to: '',
    tests: ['tests/fencing.test.ts'],
  },
]
