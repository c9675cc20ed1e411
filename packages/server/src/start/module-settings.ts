import { fieldProblems } from '@carillon/api'
import type { AnyManifest } from '@carillon/core'
import { z } from 'zod'

import { listOf, variableText, type Environment } from './environment.ts'
import { OperatorError } from './operator-error.ts'

/** The variable of a setting: `CARILLON_BILLING_API_URL` for `apiUrl` of the module `billing`. */
export function variableOf(module: string, field: string): string {
  const words = field.replaceAll(/([a-z\d])([A-Z])/g, '$1_$2')
  return `CARILLON_${module}_${words}`.toUpperCase()
}

/**
 * Reads the settings of a module from the environment. A field that is not a text is read as its schema says: a number, `true` or `false`, a
 * comma-separated list, or JSON.
 * @throws OperatorError `settings_invalid`, naming the variable at fault. It never quotes a value, which may be a secret
 */
export function readModuleSettings(env: Environment, { name, settings }: AnyManifest): object {
  if (settings === undefined) return {}
  const raw: Record<string, unknown> = {}
  for (const [field, schema] of Object.entries(settings.shape)) {
    const text = variableText(env, variableOf(name, field))
    if (text !== undefined) raw[field] = readText(text, jsonTypeOf(schema))
  }
  const parsed = settings.safeParse(raw)
  if (parsed.success) return parsed.data
  const [problem] = fieldProblems(parsed.error, (path) => path.join('.'))
  const [field = ''] = problem?.field.split('.') ?? []
  const label = field === '' ? variableOf(name, '*') : variableOf(name, field)
  const found = field in raw ? 'something else' : 'nothing'
  throw new OperatorError('settings_invalid', `${label}: ${expectedPart(problem?.message ?? '')}, got ${found}`)
}

/**
 * Refuses variables that begin as those of a module and name none of its settings: a misspelt one would be ignored silently.
 * @throws OperatorError `settings_invalid`
 */
export function refuseUnknownVariables(env: Environment, manifests: readonly AnyManifest[]): void {
  for (const { name, settings } of manifests) {
    const known = Object.keys(settings?.shape ?? {}).map((field) => variableOf(name, field))
    const prefix = variableOf(name, '')
    const unknown = Object.keys(env).find(
      (variable) =>
        variable.startsWith(prefix) && !known.includes(variable) && variableText(env, variable) !== undefined,
    )
    if (unknown === undefined) continue
    const message = `${unknown}: expected a setting of the module ${name} (${known.join(', ') || 'it has none'}), got another name`
    throw new OperatorError('settings_invalid', message)
  }
}

/** The type of a field in JSON; undefined if a text is as good as any. */
function jsonTypeOf(schema: unknown): unknown {
  const { type } = z.toJSONSchema(schema as z.ZodType, { io: 'input', unrepresentable: 'any' })
  return type
}

/** A text that cannot be read stays a text, which the schema refuses. */
function readText(text: string, type: unknown): unknown {
  switch (type) {
    case 'number':
    case 'integer':
      return /^-?\d+(?:\.\d+)?$/.test(text) ? Number(text) : text
    case 'boolean':
      return text === 'true' || (text === 'false' ? false : text)
    case 'array':
      return listOf(text) ?? text
    case 'object':
      return parsedJson(text)
    default:
      return text
  }
}

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** The message of a schema without what it got, which may be a secret: "expected number". zod begins its own with "Invalid input: ". */
function expectedPart(message: string): string {
  const text = message.replace(/^[^:]*: (?=expected )/, '').replace(/, (?:got|received) .*$/s, '')
  return text.startsWith('expected ') ? text : `expected a value that its schema accepts (${text})`
}
