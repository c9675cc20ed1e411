import type { FaultPlan } from './fault-plan.ts'
import type { ScenarioResult } from './run-scenario.ts'

/** The longest wait of a run after the last fault that is not a failure. */
const WAIT_LIMIT_MS = 30_000
/** The longest time from the loss of a run to its next attempt, as docs/guarantees.md promises it. */
const RECOVERY_LIMIT_MS = 15_000
/** During the faults these findings may be true for a moment: a worker has died, and the rescuer has not found its runs yet. */
const PASSING_KINDS = new Set(['schedule_past_due', 'run_without_lease', 'run_stuck'])
const EXAMPLES_MAX = 5

/** The reasons why a scenario failed. Empty if it did not. A scenario that proves nothing is not a failure: see `invalid`. */
export function failuresOf(result: ScenarioResult): string[] {
  const { deaths, verdict, longestWait, stuck, audit, recovery } = result
  const earlier = Object.entries(audit.earlierKinds).filter(([kind]) => !PASSING_KINDS.has(kind))
  return [
    ...deaths.map(({ name, exit, said }) => `${name} ended by itself (${exit}): ${said}`),
    ...verdict.lost.map((text) => `lost: ${text}`),
    ...(audit.slotsLost === 0 ? [] : [`lost: an audit gave ${audit.slotsLost} lost slots their line`]),
    ...earlier.map(([kind, count]) => `an audit in the middle of the faults found ${count} ${kind}`),
    ...verdict.miscounted.map((text) => `miscounted: ${text}`),
    ...(verdict.succeeded > 0 ? [] : ['no run succeeded: the scenario shows nothing']),
    ...(recovery.p99 > RECOVERY_LIMIT_MS ? [`recovery p99 took ${seconds(recovery.p99)}`] : []),
    ...verdict.doubled.map((text) => `doubled: ${text}`),
    ...verdict.early.map((text) => `early: ${text}`),
    ...verdict.unexplained.map((text) => `unexplained: ${text}`),
    ...(longestWait.forMs > WAIT_LIMIT_MS ? [`waited ${seconds(longestWait.forMs)}: ${longestWait.what}`] : []),
    ...stuck.map(({ what, forMs }) => `still open after ${seconds(forMs)}: ${what}`),
    ...(audit.isFinished ? [] : ['the audit that was asked for did not come']),
    ...(audit.findings === 0 ? [] : [`the audit found ${JSON.stringify(audit.kinds)}: ${audit.details[0] ?? ''}`]),
  ]
}

/** A table of how often each statement was cut at each moment. A required zero makes the run invalid. */
export function tableOf(plan: FaultPlan): string {
  const heads = ['sent', ...plan.moments].map((head) => head.padStart(8)).join('')
  const lines = plan.rows.map(({ label, sent, isRequired, counts }) => {
    const cells = [sent, ...counts].map((count) => String(count).padStart(8)).join('')
    const mark = isRequired && counts.includes(0) ? '  <- never cut' : isRequired ? '' : '  (too seldom to require)'
    return `${cells}  ${label}${mark}`
  })
  return [`${heads}  statement`, ...lines].join('\n')
}

/** The results of all scenarios side by side. */
export function summaryOf(results: readonly ScenarioResult[]): string {
  const rows: [string, (result: ScenarioResult) => string | number][] = [
    ['faults', ({ inflicted }) => inflicted.faults],
    ['valid', ({ inflicted }) => (inflicted.invalid.length === 0 ? 'yes' : 'NO')],
    ['workers ended by themselves', ({ deaths }) => deaths.length],
    ['starts that a fault stopped', ({ startFailures }) => startFailures],
    ['slots that came due', ({ verdict }) => verdict.slots],
    ['calls of the target', ({ verdict }) => verdict.calls],
    ['runs that succeeded', ({ verdict }) => verdict.succeeded],
    ['changes by the API client', ({ apiChanges }) => apiChanges],
    ['lost', ({ verdict, audit }) => verdict.lost.length + audit.slotsLost],
    ['doubled', ({ verdict }) => verdict.doubled.length],
    ['early', ({ verdict }) => verdict.early.length],
    ['unexplained', ({ verdict }) => verdict.unexplained.length],
    ['miscounted', ({ verdict }) => verdict.miscounted.length],
    ['attempts made again', ({ verdict }) => verdict.repeatedAttempts],
    ['longest wait after the last fault', ({ longestWait }) => seconds(longestWait.forMs)],
    ['still open at the end', ({ stuck }) => stuck.length],
    ['audit findings', ({ audit }) => (audit.isFinished ? audit.findings : 'none came')],
    ['findings of audits during faults', ({ audit }) => sum(Object.values(audit.earlierKinds))],
    ['recovered runs', ({ recovery }) => recovery.count],
    ['recovery p50', ({ recovery }) => seconds(recovery.p50)],
    ['recovery p99', ({ recovery }) => seconds(recovery.p99)],
    ['duration', (result) => seconds(1000 * result.seconds)],
  ]
  const lines = rows.map(([head, cellOf]) => [head, ...results.map((result) => String(cellOf(result)))])
  const table = [['', ...results.map(({ name }) => name)], ...lines]
  return table
    .map(([head = '', ...cells]) => head.padEnd(36) + cells.map((cell) => cell.padStart(12)).join(''))
    .join('\n')
}

/** The first few failures of each kind. */
export function examplesOf(failures: readonly string[]): string[] {
  const kinds = Map.groupBy(failures, (failure) => failure.replace(/(?:\d|: ).*$/s, ''))
  return [...kinds.values()].flatMap((all) => [
    ...all.slice(0, EXAMPLES_MAX),
    ...(all.length > EXAMPLES_MAX ? [`… and ${all.length - EXAMPLES_MAX} more of this kind`] : []),
  ])
}

function seconds(milliseconds: number): string {
  return `${(milliseconds / 1000).toFixed(1)} s`
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
