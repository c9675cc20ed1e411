import type { Run, RunWithAttempts } from '@carillon/api'

import { formatLocal, formatMs } from './format-time.ts'
import { styleOfState } from './style.ts'
import { fieldLines, tableLines, type Column } from './table.ts'
import type { Screen } from './terminal.ts'

type Attempt = RunWithAttempts['attempts'][number]

export function runTable(screen: Screen, runs: readonly Run[], timezone: string): string[] {
  const columns: Column<Run>[] = [
    { title: 'SLOT', of: ({ scheduledFor }) => formatLocal(scheduledFor, timezone) },
    { title: 'STATE', of: ({ state }) => state, style: ({ state }) => styleOfState(state) },
    { title: 'LATE', of: ({ latenessMs }) => formatMs(latenessMs) },
    { title: 'TOOK', of: durationText },
    { title: 'ATTEMPTS', of: ({ attemptCount }) => String(attemptCount) },
    { title: 'WHAT HAPPENED', of: explanationText, shrinksTo: 16 },
    { title: 'ID', of: ({ id }) => id, style: () => 'dim' },
  ]
  return tableLines(screen, columns, runs)
}

export function runFields(screen: Screen, run: Run | RunWithAttempts, timezone: string): string[] {
  const at = (instant: string | null): string => (instant === null ? '' : formatLocal(instant, timezone))
  const fields = fieldLines(screen, [
    ['Run', run.id],
    ['Schedule', run.scheduleId],
    ['State', run.reason === null ? run.state : `${run.state}: ${run.reason}`],
    ['What happened', explanationText(run)],
    ['Slot', at(run.scheduledFor)],
    ['Begun', `${at(run.begunAt)}, ${formatMs(run.latenessMs)} after the slot`],
    ['Next attempt', at(run.retryAt)],
    ['Completed', at(run.completedAt)],
    ['Trigger', run.trigger],
    ['Revision', String(run.revision)],
  ])
  if (!('attempts' in run) || run.attempts.length === 0) return fields
  return [...fields, '', ...attemptTable(screen, run.attempts, timezone)]
}

function attemptTable(screen: Screen, attempts: readonly Attempt[], timezone: string): string[] {
  const columns: Column<Attempt>[] = [
    { title: 'ATTEMPT', of: ({ attempt }) => String(attempt) },
    { title: 'OUTCOME', of: ({ outcome }) => outcome, style: ({ outcome }) => styleOfState(outcome) },
    { title: 'STARTED', of: ({ startedAt }) => formatLocal(startedAt, timezone) },
    { title: 'TOOK', of: ({ startedAt, completedAt }) => spanText(startedAt, completedAt) },
    { title: 'ANSWER', of: ({ error, result }) => errorText(error) ?? resultText(result), shrinksTo: 20 },
  ]
  return tableLines(screen, columns, attempts)
}

function durationText({ startedAt, completedAt }: Run): string {
  return startedAt === null || completedAt === null ? '-' : spanText(startedAt, completedAt)
}

function spanText(from: string, to: string): string {
  return formatMs(new Date(to).getTime() - new Date(from).getTime())
}

function explanationText({ explanation, error }: Run): string {
  const reason = errorText(error)
  return reason === undefined ? explanation : `${explanation} ${reason}`
}

/** The http target stores errors as objects with a message. Other kinds of targets may store any JSON. */
function errorText(error: unknown): string | undefined {
  if (error === null || error === undefined) return undefined
  if (typeof error === 'object' && 'message' in error && typeof error.message === 'string') return error.message
  return JSON.stringify(error)
}

function resultText(result: unknown): string {
  return result === null || result === undefined ? '' : JSON.stringify(result)
}
