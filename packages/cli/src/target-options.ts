import type { ScheduleInput } from '@carillon/api'
import { InvalidArgumentError, Option, type Command } from 'commander'

import { usageError } from './cli-error.ts'
import { durationSeconds, header, json, type Headers } from './option-values.ts'

export type TargetInput = ScheduleInput['target']

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const

interface Auth {
  readonly kind: string
  readonly secretRef: string
}

/** Not undefined, which is what commander says of a flag that was not given. */
const NO_AUTH = 'none'

/** The flags of a target, as commander reads them. */
export interface TargetOptions {
  readonly url?: string
  readonly method?: (typeof METHODS)[number]
  readonly header?: Headers
  readonly payload?: unknown
  readonly auth?: Auth | typeof NO_AUTH
  readonly timeout?: number
  readonly target?: unknown
}

export function addTargetOptions(command: Command): Command {
  const group = 'What:'
  const options = [
    new Option('--url <url>', 'what is called'),
    new Option('--method <method>', `one of ${METHODS.join(', ')} (POST)`).argParser(readMethod),
    new Option('--header <name:value>', 'a header of the call; may be repeated').argParser(header),
    new Option('--payload <json>', 'the body of the call').argParser(json),
    new Option('--auth <kind:secret>', 'bearer:<name> or hmac:<name> of a secret of the project, or none').argParser(
      readAuth,
    ),
    new Option('--timeout <duration>', 'of one attempt, 1 s to 300 s (30s)').argParser(durationSeconds),
    new Option('--target <json>', 'a target of any kind, instead of the flags above').argParser(json),
  ]
  for (const option of options) command.addOption(option.helpGroup(group))
  return command
}

function readMethod(text: string): string {
  return text.toUpperCase()
}

/** The name of a secret, never the secret itself. The service decides whether there is one. */
function readAuth(text: string): Auth | typeof NO_AUTH {
  if (text === NO_AUTH) return NO_AUTH
  const [, kind, secretRef] = /^(bearer|hmac):(.+)$/.exec(text) ?? []
  if (kind !== undefined && secretRef !== undefined) return { kind, secretRef }
  throw new InvalidArgumentError('expected bearer:<secret> or hmac:<secret>, by the name of the secret, or none')
}

/** What the flags say of the target, on top of the one there is; undefined if they say nothing. */
export function readTarget(options: TargetOptions, current?: TargetInput): TargetInput | undefined {
  const { url, method, header: headers, payload, auth, timeout, target } = options
  const changes = {
    ...(url === undefined ? {} : { url }),
    ...(method === undefined ? {} : { method }),
    ...(headers === undefined ? {} : { headers }),
    ...(payload === undefined ? {} : { payload }),
    ...(auth === undefined ? {} : { auth: auth === NO_AUTH ? { kind: NO_AUTH } : auth }),
    ...(timeout === undefined ? {} : { timeoutSeconds: timeout }),
  }
  const hasChanges = Object.keys(changes).length > 0
  if (target !== undefined) {
    if (hasChanges) throw usageError('expected --target alone, got it beside other flags of the target')
    return target as TargetInput
  }
  if (!hasChanges) return undefined
  const base = current ?? { kind: 'http' }
  if (base.kind !== 'http') throw usageError(`expected --target for a target of kind ${base.kind}, got flags of http`)
  return { ...base, ...changes }
}
