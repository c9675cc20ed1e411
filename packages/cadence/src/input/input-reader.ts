import { foundName, foundText } from './found.ts'
import type { ProblemList } from './problem.ts'

const TEXT_MAX_LENGTH = 20_000
const FIELDS_MAX = 100

/** Reads the fields of an untrusted object and reports every problem. */
export class InputReader {
  readonly problems: ProblemList
  readonly #fields: Map<string, unknown>
  readonly #prefix: string
  // The fields that `supply` set. Each maps to the field in whose text the input wrote the value.
  readonly #writtenIn = new Map<string, string>()

  private constructor(fields: Map<string, unknown>, problems: ProblemList, prefix: string) {
    this.#fields = fields
    this.problems = problems
    this.#prefix = prefix
  }

  /**
   * Undefined, with a problem, if `input` is no object or is too large. Rejects fields that are not in `known`, because a misspelt
   * field must not be ignored silently; if `known` is null, accepts any field.
   */
  static open(
    input: unknown,
    path: string,
    known: readonly string[] | null,
    problems: ProblemList,
  ): InputReader | undefined {
    const fields = fieldsOf(input)
    if (fields === undefined) {
      problems.add('wrong_type', path, 'an object', foundText(input))
      return undefined
    }
    if (fields.size > FIELDS_MAX) {
      problems.add('too_long', path, `at most ${FIELDS_MAX} fields`, 'more')
      return undefined
    }
    const reader = new InputReader(fields, problems, path === '' ? '' : `${path}.`)
    if (known !== null) reader.rejectUnknownFields(known)
    return reader
  }

  rejectUnknownFields(known: readonly string[]): void {
    for (const [name, value] of this.#fields) {
      if (known.includes(name) || value === undefined) continue
      this.problems.add(
        'unknown_field',
        `${this.#prefix}${foundName(name)}`,
        `only ${known.join(', ')}`,
        foundText(name),
      )
    }
  }

  has(name: string): boolean {
    return this.#fields.get(name) !== undefined
  }

  value(name: string): unknown {
    return this.#fields.get(name)
  }

  /** Sets a field from the text of another one (`R5/start/duration`). Adds a problem if the input has that field too. */
  supply(name: string, value: unknown, writtenIn: string): void {
    if (this.has(name)) {
      const expected = `nothing, because ${writtenIn} already sets it`
      this.problems.add('conflict', this.pathOf(name), expected, foundText(this.value(name)))
    }
    this.#fields.set(name, value)
    this.#writtenIn.set(name, writtenIn)
  }

  text(name: string): string | undefined {
    const value = this.value(name)
    return value === undefined ? undefined : this.#asText(value, this.pathOf(name))
  }

  requiredText(name: string, expected: string): string | undefined {
    if (!this.has(name)) this.problems.add('missing_field', this.pathOf(name), expected, 'nothing')
    return this.text(name)
  }

  integer(name: string, min: number, max: number): number | undefined {
    const value = this.value(name)
    if (value === undefined) return undefined
    const expected = `a whole number from ${min} to ${max}`
    if (typeof value !== 'number') this.problems.add('wrong_type', this.pathOf(name), expected, foundText(value))
    else if (!Number.isInteger(value) || value < min || value > max) {
      this.problems.add('out_of_range', this.pathOf(name), expected, foundText(value))
    } else return value
    return undefined
  }

  choice<Choice extends string>(name: string, choices: readonly Choice[]): Choice | undefined {
    const text = this.text(name)
    if (text === undefined) return undefined
    const choice = choices.find((known) => known === text)
    if (choice === undefined) {
      this.problems.add('out_of_range', this.pathOf(name), `one of ${choices.join(', ')}`, foundText(text))
    }
    return choice
  }

  /** The texts of a list, each with its path for problems. */
  texts(name: string, maxCount: number): { readonly text: string; readonly path: string }[] {
    const value = this.value(name)
    const path = this.pathOf(name)
    if (value === undefined) return []
    const items = itemsOf(value, maxCount)
    if (items === undefined) {
      this.problems.add('wrong_type', path, 'a list of texts', foundText(value))
      return []
    }
    if (items.length > maxCount) {
      this.problems.add('too_long', path, `at most ${maxCount} entries`, 'more')
      return []
    }
    return items.flatMap((item, index) => {
      const itemPath = this.#writtenIn.has(name) ? path : `${path}[${index}]`
      const text = this.#asText(item, itemPath)
      return text === undefined ? [] : [{ text, path: itemPath }]
    })
  }

  object(name: string, known: readonly string[]): InputReader | undefined {
    const value = this.value(name)
    return value === undefined ? undefined : InputReader.open(value, this.pathOf(name), known, this.problems)
  }

  pathOf(name: string): string {
    return `${this.#prefix}${this.#writtenIn.get(name) ?? name}`
  }

  #asText(value: unknown, path: string): string | undefined {
    if (typeof value !== 'string') this.problems.add('wrong_type', path, 'a text', foundText(value))
    else if (value.length > TEXT_MAX_LENGTH) {
      this.problems.add('too_long', path, `at most ${TEXT_MAX_LENGTH} characters`, `${value.length} characters`)
    } else return value
    return undefined
  }
}

/** Own fields only, so `__proto__` is a name like any other. Undefined if the input is no object or a getter throws. */
function fieldsOf(input: unknown): Map<string, unknown> | undefined {
  try {
    if (typeof input !== 'object' || input === null || Array.isArray(input) || ArrayBuffer.isView(input)) {
      return undefined
    }
    // One more than the limit is enough to reject the input; copying a million fields would take a second.
    const names = Object.keys(input).slice(0, FIELDS_MAX + 1)
    return new Map(names.map((name) => [name, Reflect.get(input, name) as unknown]))
  } catch {
    return undefined
  }
}

function itemsOf(value: unknown, maxCount: number): unknown[] | undefined {
  try {
    if (!Array.isArray(value)) return undefined
    return Array.from({ length: Math.min(value.length, maxCount + 1) }, (_, index): unknown => value[index])
  } catch {
    return undefined
  }
}
