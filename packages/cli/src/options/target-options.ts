import { HTTP_METHOD_DEFAULT, HTTP_METHODS, HTTP_TIMEOUT_SECONDS, SECRET_AUTH_KINDS } from '@carillon/api'
import { InvalidArgumentError, Option, type Command } from 'commander'

import { usageError } from '../process/cli-error.ts'
import type { Cli } from '../process/cli.ts'
import { dropUndefined, durationSeconds, header, json, type Headers } from './option-values.ts'
import { readTargetJson, type TargetDefinition } from './target-json.ts'

interface SecretAuth {
  readonly kind: string
  readonly secretRef: string
}

/** The value of `--auth none`. It is not undefined, which commander returns for an option that was not passed. */
const NO_AUTH = 'none'

/** The target options as commander returns them. */
export interface TargetOptions {
  readonly url?: string
  readonly method?: string
  readonly header?: Headers
  readonly payload?: unknown
  readonly auth?: SecretAuth | typeof NO_AUTH
  readonly timeout?: number
  readonly targetJson?: string
}

export function addTargetOptions(command: Command): Command {
  const { min, max, default: seconds } = HTTP_TIMEOUT_SECONDS
  const methods = `HTTP method: ${HTTP_METHODS.join(', ')} (default: ${HTTP_METHOD_DEFAULT})`
  const auth = `${authForms('name')} of a secret in the project, or none`
  const timeout = `time limit of one attempt, ${min}s to ${max}s (default: ${seconds}s)`
  const options = [
    new Option('--url <url>', 'URL to call'),
    new Option('--method <method>', methods).argParser((text) => text.toUpperCase()),
    new Option('--header <name:value>', 'request header; may be repeated').argParser(header),
    new Option('--payload <json>', 'request body').argParser(json),
    new Option('--auth <kind:secret>', auth).argParser(readAuth),
    new Option('--timeout <duration>', timeout).argParser(durationSeconds),
    new Option('--target-json <json|@file|->', 'a target of any kind as JSON, instead of the options above'),
  ]
  for (const option of options) command.addOption(option.helpGroup('Target:'))
  return command
}

/** `bearer:<name> or hmac:<name>` */
function authForms(what: string): string {
  return SECRET_AUTH_KINDS.map((kind) => `${kind}:<${what}>`).join(' or ')
}

/** Reads the name of a secret, never its value. The server checks that the secret exists. */
function readAuth(text: string): SecretAuth | typeof NO_AUTH {
  if (text === NO_AUTH) return NO_AUTH
  const [, kind, secretRef] = /^([^:]+):(.+)$/.exec(text) ?? []
  const isKnown = SECRET_AUTH_KINDS.some((known) => known === kind)
  if (isKnown && kind !== undefined && secretRef !== undefined) return { kind, secretRef }
  throw new InvalidArgumentError(`expected ${authForms('secret')}, by the name of the secret, or none`)
}

/** The flags of http targets that the user passed. */
function httpFlags({ url, method, header: headers, payload, auth, timeout }: TargetOptions): string[] {
  const passed = { '--url': url, '--method': method, '--header': headers, '--payload': payload, '--auth': auth }
  return Object.entries({ ...passed, '--timeout': timeout })
    .filter(([, value]) => value !== undefined)
    .map(([flag]) => flag)
}

/** True if the user passed an option that describes a target. */
export function hasTarget(options: TargetOptions): boolean {
  return options.targetJson !== undefined || httpFlags(options).length > 0
}

/** The target that the options describe, as changes to `current` if there is one; undefined if they set nothing. */
export async function readTarget(
  options: TargetOptions,
  context: Pick<Cli, 'cwd' | 'stdin'>,
  current?: TargetDefinition,
): Promise<TargetDefinition | undefined> {
  const { url, method, header: headers, payload, auth, timeout, targetJson } = options
  const flags = httpFlags(options)
  if (targetJson !== undefined) {
    if (flags.length > 0) throw usageError(`expected --target-json alone, got it with ${flags.join(', ')}`)
    return readTargetJson(targetJson, context)
  }
  if (flags.length === 0) return undefined
  const base = current ?? { kind: 'http' }
  if (base.kind !== 'http') {
    throw usageError(`expected --target-json for a target of kind ${base.kind}, got ${flags.join(', ')}`)
  }
  const changes = dropUndefined({
    url,
    method,
    headers,
    payload,
    auth: auth === NO_AUTH ? { kind: NO_AUTH } : auth,
    timeoutSeconds: timeout,
  })
  return { ...base, ...changes }
}
