import type { Progress } from '../progress.ts'
import { formatNumber } from '../report/number.ts'
import type { Failure, Figure } from '../results.ts'
import type { Sizes, WorkName } from '../work.ts'
import { COMPARE_SIZES, SMOKE_SIZES, WARM_UP_SIZES, type CompareOptions } from './options.ts'
import { SIDE_LABELS, type SideAnswer, type SideName, type SideOrder } from './side-message.ts'

interface MeasuredSide {
  readonly name: SideName
  measure(order: SideOrder, signal: AbortSignal): Promise<SideAnswer>
}

interface RoundsParts {
  readonly sides: readonly [MeasuredSide, MeasuredSide]
  readonly progress: Progress
  readonly signal: AbortSignal
}

/** Measures two sides in turn, work by work, and keeps their figures. */
export class Rounds {
  readonly failures: (Failure & { readonly side: SideName })[] = []
  readonly notes: string[] = []
  readonly #parts: RoundsParts
  readonly #figures = new Map<SideName, readonly Figure[]>()
  /**
   * Works that have failed on one side, or that one side does not have. They are not measured any more, because there is nothing to
   * compare.
   */
  readonly #dropped = new Set<WorkName>()

  constructor(parts: RoundsParts) {
    this.#parts = parts
  }

  figuresOf(side: SideName): readonly Figure[] {
    return this.#figures.get(side) ?? []
  }

  async measure({ works, rounds, isSmoke }: Pick<CompareOptions, 'works' | 'rounds' | 'isSmoke'>): Promise<void> {
    await this.#measureRound(works, { round: 0, name: 'warm-up', sizes: isSmoke ? SMOKE_SIZES : WARM_UP_SIZES })
    const sizes = isSmoke ? SMOKE_SIZES : COMPARE_SIZES
    for (let round = 1; round <= rounds; round += 1) {
      await this.#measureRound(works, { round, name: `round ${round} of ${rounds}`, sizes })
    }
  }

  /** Each round begins with the other side, so that neither is always the first. */
  async #measureRound(works: readonly WorkName[], p: { round: number; name: string; sizes: Sizes }): Promise<void> {
    const { sides } = this.#parts
    for (const work of works) {
      for (const side of p.round % 2 === 1 ? sides : sides.toReversed()) {
        if (!this.#dropped.has(work)) await this.#measureOnce(side, work, p)
      }
    }
  }

  async #measureOnce(
    side: MeasuredSide,
    work: WorkName,
    { round, name, sizes }: { round: number; name: string; sizes: Sizes },
  ): Promise<void> {
    const { progress, signal } = this.#parts
    const place = `${name} · ${work} · ${SIDE_LABELS[side.name]}`
    progress.begin(place)
    const startedAt = progress.seconds
    const answer = await side.measure({ work, sizes, isWarmUp: round === 0 }, signal)
    if (answer.isMissing) {
      this.#dropped.add(work)
      this.notes.push(`${SIDE_LABELS[side.name]} has no work "${work}": it is not compared`)
      progress.end(place, 'there is no such work')
      return
    }
    const failures = answer.failures.filter((failure) => failure.work === work)
    if (failures.length > 0) {
      this.#dropped.add(work)
      this.failures.push(...failures.map((failure) => ({ ...failure, round, side: side.name })))
      progress.end(place, `failed: ${failures.map(({ reason }) => reason).join('; ')}`)
      return
    }
    if (round > 0) this.#figures.set(side.name, answer.figures)
    const seconds = (progress.seconds - startedAt).toFixed(1)
    progress.end(place, `${latest(answer.figures, work)} (${seconds} s)`)
  }
}

function latest(figures: readonly Figure[], work: WorkName): string {
  return figures
    .filter((figure) => figure.work === work)
    .map(({ metric, unit, values }) => `${metric} ${formatNumber(values.at(-1) ?? Number.NaN)} ${unit}`)
    .join(', ')
}
