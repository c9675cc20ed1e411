/** Makes names differ: the second of a kind becomes `name (2)`. */
export class UniqueNames {
  readonly #taken = new Set<string>()

  take(name: string): string {
    let unique = name
    for (let count = 2; this.#taken.has(unique); count++) unique = `${name} (${count})`
    this.#taken.add(unique)
    return unique
  }
}
