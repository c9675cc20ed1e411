import { OperatorError } from './operator-error.ts'

export type Environment = Readonly<Record<string, string | undefined>>

/** How the text of a variable is parsed. */
export interface Reading<Value> {
  /** Completes the sentence "expected …" in an error. */
  readonly expected: string
  /** Returns undefined for a text that is wrong. */
  readonly read: (text: string) => Value | undefined
  /** Completes "got …" in an error. A variable that may hold a secret must not quote it. @default quotes the text */
  readonly describe?: (text: string) => string
}

/** The trimmed text of a variable; undefined if it is unset or empty. */
export function variableText(env: Environment, variable: string): string | undefined {
  const text = env[variable]?.trim() ?? ''
  return text === '' ? undefined : text
}

/** True if a header can carry the text unchanged. */
export function isVisibleAscii(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text)
}

/** Splits a comma-separated list; undefined if an item is empty. */
export function listOf(text: string): readonly string[] | undefined {
  const items = text.split(',').map((item) => item.trim())
  return items.includes('') ? undefined : items
}

/**
 * Variables that make sense only together. A partly set group is refused: these groups turn on access checks, and an operator
 * who sets only some variables of a group must not wrongly believe that its check is on.
 *
 * Throws OperatorError `settings_invalid`, naming the variables at fault.
 */
export class VariableGroup<Required extends string, Optional extends string> {
  readonly #env: Environment
  readonly #required: readonly Required[]
  readonly #firstSet: string | undefined

  constructor(env: Environment, required: readonly Required[], optional: readonly Optional[]) {
    this.#env = env
    this.#required = required
    this.#firstSet = [...required, ...optional].find((variable) => variableText(env, variable) !== undefined)
  }

  /** True if at least one variable of the group is set. */
  get isSet(): boolean {
    return this.#firstSet !== undefined
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
    throw new OperatorError('settings_invalid', `${variable}: expected ${expected}, got ${describe(text)}`)
  }

  #refuseMissing(): never {
    const missing = this.#required.filter((variable) => variableText(this.#env, variable) === undefined)
    const together = `${this.#required.slice(0, -1).join(', ')} and ${this.#required.at(-1) ?? ''}`
    throw new OperatorError(
      'settings_invalid',
      `${missing.join(', ')}: expected a value because ${this.#firstSet ?? 'another'} has one, got nothing: ` +
        `set ${together} together, or none`,
    )
  }
}
