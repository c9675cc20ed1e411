import type { Schedule, ScheduleEdit, ScheduleInput } from '@carillon/api'

import { editedCadence, hasBounds, readCadence, requireCadence, type CadenceOptions } from './cadence-options.ts'
import { CliError, usageError } from './cli-error.ts'
import type { Cli } from './cli.ts'
import { readPolicy, type PolicyOptions } from './policy-options.ts'
import { readText } from './read-text.ts'
import { readTarget, type TargetOptions } from './target-options.ts'
import { uncheckedInput } from './unchecked-input.ts'

export interface BodyOptions extends CadenceOptions, TargetOptions, PolicyOptions {
  readonly file?: string
  readonly grant?: string
  readonly owner?: string
}

type World = Pick<Cli, 'cwd' | 'stdin' | 'clock'>

/** What is to be made: from a file, or from the flags. */
export async function readInput(name: string | undefined, options: BodyOptions, world: World): Promise<ScheduleInput> {
  if (options.file !== undefined) return readInputFile(options.file, name, options, world)
  const cadence = requireCadence(options, world.clock.now())
  const target = readTarget(options)
  if (target === undefined) throw usageError('expected --url or --target, got neither: say what is to be called')
  if (name === undefined) throw usageError('expected a name, got none')
  const { grant, owner } = options
  const policy = readPolicy(options)
  return {
    name,
    cadence,
    target,
    ...(policy === undefined ? {} : { policy }),
    ...(grant === undefined ? {} : { grantId: grant }),
    ...(owner === undefined ? {} : { ownerSubject: owner }),
  }
}

async function readInputFile(
  file: string,
  name: string | undefined,
  options: BodyOptions,
  world: World,
): Promise<ScheduleInput> {
  requireFileAlone(options, world)
  const body = await readJsonObject(file, world)
  return uncheckedInput({ ...body, ...(name === undefined ? {} : { name }) })
}

/** What is to change about a schedule. */
export async function readEdit(
  schedule: Schedule,
  options: BodyOptions & { readonly name?: string },
  world: World,
): Promise<ScheduleEdit> {
  const { name, grant, file } = options
  if (file !== undefined) {
    requireFileAlone(options, world)
    return { ...(await readJsonObject(file, world)), ...(name === undefined ? {} : { name }) }
  }
  const cadence = editedCadence(schedule.cadence, options, world.clock.now())
  const target = readTarget(options, schedule.target)
  const policy = readPolicy(options)
  const edit: ScheduleEdit = {
    ...(name === undefined ? {} : { name }),
    ...(cadence === undefined ? {} : { cadence }),
    ...(target === undefined ? {} : { target }),
    ...(policy === undefined ? {} : { policy }),
    ...(grant === undefined ? {} : { grantId: grant === 'none' ? null : grant }),
  }
  if (Object.keys(edit).length === 0) throw usageError('expected something to change, got no flag that says what')
  return edit
}

/** A file says all of it: what a flag beside it would change could only be guessed. */
function requireFileAlone(options: BodyOptions, { clock }: Pick<World, 'clock'>): void {
  const hasFlags =
    readCadence(options, clock.now()) !== undefined ||
    hasBounds(options) ||
    readTarget(options) !== undefined ||
    readPolicy(options) !== undefined ||
    options.grant !== undefined ||
    options.owner !== undefined
  if (hasFlags) throw usageError('expected --file alone, got it beside flags that say when, what or how')
}

async function readJsonObject(file: string, world: World): Promise<Record<string, unknown>> {
  const text = await readText(file, world)
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new CliError('file_invalid', `expected JSON in ${file}: ${reason}`, { cause: error })
  }
  throw new CliError('file_invalid', `expected a JSON object in ${file}, got something else`)
}
