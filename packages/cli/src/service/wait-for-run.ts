import { isRunOver, type Client, type Run } from '@carillon/api'

import { formatMs } from '../output/format-time.ts'
import { CliError } from '../process/cli-error.ts'
import type { Cli } from '../process/cli.ts'
import type { Exit } from '../process/exit-codes.ts'
import { connect } from './connect.ts'
import { followEvents } from './follow-events.ts'

interface WaitOptions {
  /** Reads the run from the server; undefined if there is none yet. */
  readonly find: (client: Client) => Promise<Run | undefined>
  /** True for the awaited run among the runs of the event stream. */
  readonly matches: (run: Run) => boolean
  /** @default no limit */
  readonly timeoutMs?: number | undefined
  /** Names the run in the message of a timeout. */
  readonly what: string
}

/**
 * Waits until a run is over. Opens the event stream first and then reads the run, and reads it again after every reconnect. So
 * either a read or the stream shows the end of the run, whenever it comes.
 */
export async function waitForRun(cli: Cli, { find, matches, timeoutMs, what }: WaitOptions): Promise<Run> {
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
      const run = followed.event === 'run' ? followed.data.run : await findAfter(followed.event, () => find(client))
      if (run !== undefined && matches(run) && isRunOver(run)) return run
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

/** Reads the run after `open`, and after `reset`, which means that events were lost. Changes of schedules do not matter. */
async function findAfter(
  event: 'open' | 'schedule' | 'reset',
  find: () => Promise<Run | undefined>,
): Promise<Run | undefined> {
  return event === 'schedule' ? undefined : find()
}

/** The exit code of a command that waited for this run. */
export function exitForRun({ state }: Pick<Run, 'state'>): Exit {
  return state === 'succeeded' ? 'ok' : 'run_unsuccessful'
}
