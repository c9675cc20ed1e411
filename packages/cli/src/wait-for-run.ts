import type { Client, Run, RunState } from '@carillon/api'

import { CliError } from './cli-error.ts'
import type { Cli } from './cli.ts'
import { connect } from './connection.ts'
import type { Exit } from './exit-codes.ts'
import { followEvents } from './follow-events.ts'
import { formatMs } from './output/format-time.ts'

interface WaitOptions {
  /** Looks for the run in the ledger. */
  readonly look: (client: Client) => Promise<Run | undefined>
  /** Tells it among the runs of the feed. */
  readonly isIt: (run: Run) => boolean
  /** @default for ever */
  readonly timeoutMs?: number | undefined
  /** Of what is waited for, in the message of a timeout. */
  readonly what: string
}

const OVER: Readonly<Record<RunState, boolean>> = {
  pending: false,
  running: false,
  retrying: false,
  succeeded: true,
  failed: true,
  cancelled: true,
  skipped: true,
}

export function isOver({ state }: Pick<Run, 'state'>): boolean {
  return OVER[state]
}

/**
 * The run, once it is over. Follows the feed first and then looks, and looks again after every break: what ends between
 * the two is told by one or the other.
 */
export async function waitForRun(cli: Cli, { look, isIt, timeoutMs, what }: WaitOptions): Promise<Run> {
  const ended = new AbortController()
  let isTimedOut = false
  const cancelTimer =
    timeoutMs === undefined
      ? undefined
      : cli.clock.after(timeoutMs, () => {
          isTimedOut = true
          ended.abort()
        })
  const signal = AbortSignal.any([cli.signal, ended.signal])
  try {
    const client = connect(cli, { signal })
    for await (const followed of followEvents(cli, { signal })) {
      const run = followed.event === 'run' ? followed.data.run : await lookAfter(followed.event, () => look(client))
      if (run !== undefined && isIt(run) && isOver(run)) return run
    }
  } catch (error) {
    if (!isTimedOut) throw error
  } finally {
    cancelTimer?.()
    ended.abort()
  }
  throw isTimedOut
    ? new CliError('timed_out', `${what} was not over after ${formatMs(timeoutMs ?? 0)}`)
    : new CliError('interrupted', 'interrupted')
}

/** After `open`, and after `reset`, which says that something was missed. A change of a schedule says nothing of runs. */
async function lookAfter(
  event: 'open' | 'schedule' | 'reset',
  look: () => Promise<Run | undefined>,
): Promise<Run | undefined> {
  return event === 'schedule' ? undefined : look()
}

/** How a command ends that waited for it. */
export function exitOf({ state }: Pick<Run, 'state'>): Exit {
  return state === 'succeeded' ? 'ok' : 'run_unsuccessful'
}
