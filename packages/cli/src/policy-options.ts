import type { ScheduleInput } from '@carillon/api'
import { Option, type Command } from 'commander'

import { durationSeconds, wholeNumber } from './option-values.ts'

type PolicyInput = NonNullable<ScheduleInput['policy']>

/** The flags of a policy, as commander reads them. */
export interface PolicyOptions {
  readonly overlap?: NonNullable<PolicyInput['overlap']>
  readonly missed?: NonNullable<PolicyInput['missed']>
  readonly deadline?: number
  readonly retries?: number
  readonly autoPause?: number
  readonly spread?: number
}

export function addPolicyOptions(command: Command): Command {
  const group = 'How:'
  const options = [
    new Option('--overlap <policy>', 'while the run before is under way (forbid)').choices([
      'forbid',
      'queue',
      'allow',
      'replace',
    ]),
    new Option('--missed <policy>', 'for a slot that could not begin in time').choices(['skip', 'run_once']),
    new Option('--deadline <duration>', 'how late a slot may begin (5m)').argParser(durationSeconds),
    new Option('--retries <count>', 'so many more attempts after the first, 0 to 99 (9)').argParser(wholeNumber),
    new Option('--auto-pause <count>', 'pause after so many failed runs in a row, 0 is never (10)').argParser(
      wholeNumber,
    ),
    new Option('--spread <duration>', 'spread equal slots over so long (0)').argParser(durationSeconds),
  ]
  for (const option of options) command.addOption(option.helpGroup(group))
  return command
}

/** What the flags say of the policy; undefined if nothing. */
export function readPolicy(options: PolicyOptions): PolicyInput | undefined {
  const { overlap, missed, deadline, retries, autoPause, spread } = options
  const policy: PolicyInput = {
    ...(overlap === undefined ? {} : { overlap }),
    ...(missed === undefined ? {} : { missed }),
    ...(deadline === undefined ? {} : { startingDeadlineSeconds: deadline }),
    ...(retries === undefined ? {} : { retry: { maxAttempts: retries + 1 } }),
    ...(autoPause === undefined ? {} : { autoPauseThreshold: autoPause }),
    ...(spread === undefined ? {} : { spreadSeconds: spread }),
  }
  return Object.keys(policy).length === 0 ? undefined : policy
}
