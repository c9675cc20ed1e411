import { FINDING_KINDS, type FindingKind, type NewFinding } from '../store/audits.ts'

/** What an audit has found so far: counts all, keeps the first ones, so that a broken ledger does not fill the memory. */
export class FindingList {
  readonly #keep: number
  readonly #kept: NewFinding[] = []
  readonly #counts: Record<FindingKind, number>
  #repaired = 0

  constructor(keep: number) {
    this.#keep = keep
    this.#counts = Object.fromEntries(FINDING_KINDS.map((kind) => [kind, 0])) as Record<FindingKind, number>
  }

  add(finding: NewFinding): void {
    this.#counts[finding.kind] += 1
    if (finding.isRepaired) this.#repaired += 1
    if (this.#kept.length < this.#keep) this.#kept.push(finding)
  }

  get kept(): readonly NewFinding[] {
    return this.#kept
  }

  get counts(): Readonly<Record<FindingKind, number>> {
    return { ...this.#counts }
  }

  get total(): number {
    return Object.values(this.#counts).reduce((sum, count) => sum + count, 0)
  }

  get repaired(): number {
    return this.#repaired
  }
}
