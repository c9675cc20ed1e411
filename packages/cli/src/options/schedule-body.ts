import { messageOf, type Schedule, type ScheduleEdit, type ScheduleInput } from '@carillon/api'

import { CliError, usageError } from '../process/cli-error.ts'
import type { Cli } from '../process/cli.ts'
import { readText } from '../process/input.ts'
import { editedCadence, getCadence, hasBounds, readCadence, type CadenceOptions } from './cadence-options.ts'
import { dropUndefined } from './option-values.ts'
import { readPolicy, type PolicyOptions } from './policy-options.ts'
import { hasTarget, readTarget, type TargetOptions } from './target-options.ts'

export interface BodyOptions extends CadenceOptions, TargetOptions, PolicyOptions {
  readonly file?: string
  readonly grant?: string
  readonly owner?: string
}

type Context = Pick<Cli, 'cwd' | 'stdin' | 'clock'>

/** The body of a create request, from `--file` or from the other options. */
export async function readInput(
  name: string | undefined,
  options: BodyOptions,
  context: Context,
): Promise<ScheduleInput> {
  if (options.file !== undefined) return readInputFile(options.file, name, options, context)
  const cadence = getCadence(options, context.clock.now())
  const target = await readTarget(options, context)
  if (target === undefined) throw usageError('expected --url or --target-json, got neither')
  if (name === undefined) throw usageError('expected a name, got none')
  const { grant, owner } = options
  return {
    name,
    cadence,
    target,
    ...dropUndefined({ policy: readPolicy(options), grantId: grant, ownerSubject: owner }),
  }
}

async function readInputFile(
  file: string,
  name: string | undefined,
  options: BodyOptions,
  context: Context,
): Promise<ScheduleInput> {
  requireFileAlone(options, context)
  const body = await readJsonObject(file, context)
  return uncheckedInput({ ...body, ...dropUndefined({ name }) })
}

/**
 * Types a body that a user wrote, without checking it. The server checks it and names each field at fault; a check here
 * would state a second time what a schedule is.
 */
export function uncheckedInput(written: object): ScheduleInput {
  return written as ScheduleInput
}

/** The body of an edit request, from `--file` or from the other options. */
export async function readEdit(
  schedule: Schedule,
  options: BodyOptions & { readonly name?: string },
  context: Context,
): Promise<ScheduleEdit> {
  const { name, grant, file } = options
  if (file !== undefined) {
    requireFileAlone(options, context)
    return { ...(await readJsonObject(file, context)), ...dropUndefined({ name }) }
  }
  const edit: ScheduleEdit = dropUndefined({
    name,
    cadence: editedCadence(schedule.cadence, options, context.clock.now()),
    target: await readTarget(options, context, schedule.target),
    policy: readPolicy(options),
    grantId: grant === 'none' ? null : grant,
  })
  if (Object.keys(edit).length === 0) throw usageError('expected an option that changes something, got none')
  return edit
}

/** A file is the whole body. Merging it with options would have to guess which of the two wins. */
function requireFileAlone(options: BodyOptions, { clock }: Pick<Context, 'clock'>): void {
  const hasOthers =
    readCadence(options, clock.now()) !== undefined ||
    hasBounds(options) ||
    hasTarget(options) ||
    readPolicy(options) !== undefined ||
    options.grant !== undefined ||
    options.owner !== undefined
  if (hasOthers) throw usageError('expected --file alone, got it with other options of the schedule')
}

async function readJsonObject(file: string, context: Context): Promise<Record<string, unknown>> {
  const text = await readText(file, context)
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  } catch (error) {
    throw new CliError('file_invalid', `expected JSON in ${file}, got invalid JSON: ${messageOf(error)}`, {
      cause: error,
    })
  }
  throw new CliError('file_invalid', `expected a JSON object in ${file}, got another value`)
}
