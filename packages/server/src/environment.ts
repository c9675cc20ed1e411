import { ServiceError } from './service-error.ts'

export type Environment = Readonly<Record<string, string | undefined>>

/** What a variable is to say, and how a text is read as that. */
export interface Reading<Value> {
  readonly expected: string
  /** Undefined: it says something else. */
  readonly read: (text: string) => Value | undefined
  /** How a text that is wrong is told. @default the text itself: a secret needs another */
  readonly describe?: (text: string) => string
}

/** Without the blanks around it; undefined if it is unset or empty. */
export function variableText(env: Environment, variable: string): string | undefined {
  const text = env[variable]?.trim() ?? ''
  return text === '' ? undefined : text
}

/** Of a list with commas between. Undefined if it has an empty place. */
export function listOf(text: string): readonly string[] | undefined {
  const items = text.split(',').map((item) => item.trim())
  return items.includes('') ? undefined : items
}

/**
 * Variables that make sense only together. A group that is set in part is refused: what it turns on is the check of who asks,
 * and nobody should believe that it is on.
 *
 * Throws ServiceError `settings_invalid`, naming the variables at fault.
 */
export class VariableGroup<Required extends string, Optional extends string> {
  readonly #env: Environment
  readonly #required: readonly Required[]
  readonly #found: string | undefined

  constructor(env: Environment, required: readonly Required[], optional: readonly Optional[]) {
    this.#env = env
    this.#required = required
    this.#found = [...required, ...optional].find((variable) => variableText(env, variable) !== undefined)
  }

  /** Whether any of them says something. */
  get isSet(): boolean {
    return this.#found !== undefined
  }

  required<Value>(variable: Required, reading: Reading<Value>): Value {
    return this.#read(variable, reading) ?? this.#refuseMissing()
  }

  optional<Value, Otherwise>(variable: Optional, reading: Reading<Value>, otherwise: Otherwise): Value | Otherwise {
    return this.#read(variable, reading) ?? otherwise
  }

  #read<Value>(
    variable: string,
    { expected, read, describe = (text) => JSON.stringify(text) }: Reading<Value>,
  ): Value | undefined {
    const text = variableText(this.#env, variable)
    if (text === undefined) return undefined
    const value = read(text)
    if (value !== undefined) return value
    throw new ServiceError('settings_invalid', `${variable}: expected ${expected}, got ${describe(text)}`)
  }

  #refuseMissing(): never {
    const missing = this.#required.filter((variable) => variableText(this.#env, variable) === undefined)
    const together = `${this.#required.slice(0, -1).join(', ')} and ${this.#required.at(-1) ?? ''}`
    throw new ServiceError(
      'settings_invalid',
      `${missing.join(', ')}: expected a value because ${this.#found ?? 'another'} has one, got nothing: ` +
        `set ${together} together, or none`,
    )
  }
}
