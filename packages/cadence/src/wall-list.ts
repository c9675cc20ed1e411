import { firstAbove, lastBelow } from './sorted-list.ts'
import type { WallRule } from './wall-rule.ts'
import type { Wall } from './wall.ts'

/** Wall times named one by one, ascending. */
export class WallList implements WallRule {
  readonly #walls: readonly Wall[]

  constructor(walls: readonly Wall[]) {
    this.#walls = walls
  }

  next(after: Wall): Wall | null {
    return firstAbove(this.#walls, after) ?? null
  }

  previous(before: Wall): Wall | null {
    return lastBelow(this.#walls, before) ?? null
  }
}
