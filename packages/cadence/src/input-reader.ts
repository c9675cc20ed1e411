import { quote } from './problem.ts'
import type { ProblemList } from './problem.ts'

const TEXT_MAX_LENGTH = 20_000

/** Reads the fields of an untrusted object, telling every problem and every field that nobody asked for. */
export class InputReader {
  readonly problems: ProblemList
  readonly #fields: Map<string, unknown>
  readonly #prefix: string
  readonly #asked = new Set<string>()
  // Fields whose content was written inside another one.
  readonly #writtenIn = new Map<string, string>()

  constructor(input: object, problems: ProblemList, prefix = '') {
    // Own fields only: `__proto__` and friends are names like any other.
    this.#fields = new Map(Object.entries(input))
    this.problems = problems
    this.#prefix = prefix
  }

  has(name: string): boolean {
    this.#asked.add(name)
    return this.#fields.get(name) !== undefined
  }

  value(name: string): unknown {
    this.#asked.add(name)
    return this.#fields.get(name)
  }

  /** Takes a field's content from the text of another (`R5/start/duration`), unless it was given by itself too. */
  supply(name: string, value: unknown, writtenIn: string): void {
    if (this.has(name)) {
      this.problems.add(
        'conflict',
        this.pathOf(name),
        `nothing, because ${writtenIn} says it already`,
        quote(this.value(name)),
      )
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
    if (typeof value !== 'number') this.problems.add('wrong_type', this.pathOf(name), expected, quote(value))
    else if (!Number.isInteger(value) || value < min || value > max) {
      this.problems.add('out_of_range', this.pathOf(name), expected, quote(value))
    } else return value
    return undefined
  }

  choice<Choice extends string>(name: string, choices: readonly Choice[]): Choice | undefined {
    const text = this.text(name)
    if (text === undefined) return undefined
    const choice = choices.find((known) => known === text)
    if (choice === undefined) {
      this.problems.add('out_of_range', this.pathOf(name), `one of ${choices.join(', ')}`, quote(text))
    }
    return choice
  }

  texts(name: string, maxCount: number): readonly string[] {
    const value = this.value(name)
    const path = this.pathOf(name)
    if (value === undefined) return []
    if (!Array.isArray(value)) {
      this.problems.add('wrong_type', path, 'a list of texts', quote(value))
      return []
    }
    if (value.length > maxCount) {
      this.problems.add('too_long', path, `at most ${maxCount} entries`, `${value.length} entries`)
      return []
    }
    const texts = value.map((item: unknown, index) => this.#asText(item, `${path}[${index}]`))
    return texts.filter((text) => text !== undefined)
  }

  object(name: string): InputReader | undefined {
    const value = this.value(name)
    if (value === undefined) return undefined
    if (isRecord(value)) return new InputReader(value, this.problems, `${this.pathOf(name)}.`)
    this.problems.add('wrong_type', this.pathOf(name), 'an object', quote(value))
    return undefined
  }

  /** Call when all fields were asked for: a misspelt one must not be dropped in silence. */
  refuseOthers(): void {
    const known = [...this.#asked].join(', ')
    for (const [name, value] of this.#fields) {
      if (this.#asked.has(name) || value === undefined) continue
      this.problems.add('unknown_field', `${this.#prefix}${shorten(name)}`, `only ${known}`, quote(name))
    }
  }

  pathOf(name: string): string {
    return `${this.#prefix}${this.#writtenIn.get(name) ?? name}`
  }

  #asText(value: unknown, path: string): string | undefined {
    if (typeof value !== 'string') this.problems.add('wrong_type', path, 'a text', quote(value))
    else if (value.length > TEXT_MAX_LENGTH) {
      this.problems.add('too_long', path, `at most ${TEXT_MAX_LENGTH} characters`, `${value.length} characters`)
    } else return value
    return undefined
  }
}

export function isRecord(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function shorten(name: string): string {
  return name.length > 60 ? `${name.slice(0, 60)}…` : name
}
