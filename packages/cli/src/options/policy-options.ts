import {
  AUTO_PAUSE_THRESHOLD,
  HTTP_RETRY,
  MISSED_POLICIES,
  OVERLAP_DEFAULT,
  OVERLAP_POLICIES,
  RETRY_ATTEMPTS,
  SPREAD_SECONDS,
  STARTING_DEADLINE_SECONDS,
  type ScheduleInput,
} from '@carillon/api'
import { Option, type Command } from 'commander'

import { countOrNone, dropUndefined, durationSeconds, wholeNumber } from './option-values.ts'

type PolicyInput = NonNullable<ScheduleInput['policy']>

/** The policy options as commander returns them. */
export interface PolicyOptions {
  readonly overlap?: NonNullable<PolicyInput['overlap']>
  readonly missed?: NonNullable<PolicyInput['missed']>
  readonly deadline?: number
  readonly retries?: number
  readonly autoPause?: number
  readonly spread?: number
  readonly runLimit?: number | 'none'
}

export function addPolicyOptions(command: Command): Command {
  const overlap = `what to do if the previous run is still running (default: ${OVERLAP_DEFAULT})`
  const deadline = `how late a slot may start (default: ${STARTING_DEADLINE_SECONDS.default / 60}m)`
  const retries = `attempts after the first one, 0 to ${RETRY_ATTEMPTS.max - 1} (default: ${HTTP_RETRY.maxAttempts - 1})`
  const autoPause = `pause after this many failed runs in a row, 0 for never (default: ${AUTO_PAUSE_THRESHOLD.default})`
  const spread = `spread schedules that share a slot over this duration (default: ${SPREAD_SECONDS.default})`
  const options = [
    new Option('--overlap <policy>', overlap).choices(OVERLAP_POLICIES),
    new Option('--missed <policy>', 'what to do with a slot that could not start before its deadline').choices(
      MISSED_POLICIES,
    ),
    new Option('--deadline <duration>', deadline).argParser(durationSeconds),
    new Option('--retries <count>', retries).argParser(wholeNumber),
    new Option('--auto-pause <count>', autoPause).argParser(wholeNumber),
    new Option('--spread <duration>', spread).argParser(durationSeconds),
    new Option('--run-limit <count>', 'complete the schedule after this many runs; none for no limit').argParser(
      countOrNone,
    ),
  ]
  for (const option of options) command.addOption(option.helpGroup('Policy:'))
  return command
}

/** The part of a policy that the options set; undefined if they set none. */
export function readPolicy(options: PolicyOptions): PolicyInput | undefined {
  const { overlap, missed, deadline, retries, autoPause, spread, runLimit } = options
  const policy: PolicyInput = dropUndefined({
    overlap,
    missed,
    startingDeadlineSeconds: deadline,
    retry: retries === undefined ? undefined : { maxAttempts: retries + 1 },
    autoPauseThreshold: autoPause,
    spreadSeconds: spread,
    runLimit: runLimit === 'none' ? null : runLimit,
  })
  return Object.keys(policy).length === 0 ? undefined : policy
}
