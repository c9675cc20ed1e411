import { TurnService, type ClaimedTurn, type Slice, type TurnServiceDeps } from '../jobs/turn-service.ts'
import type { Json } from '../kernel/json.ts'
import type { Service } from '../kernel/service.ts'
import type { LoadedModule, ModuleTurn } from '../ports/module.ts'

/** How often a worker looks whether a slice is due. */
const LOOK_MS = 2000
const PAUSE_AFTER_FAILURE_MS = 1000
/** A service that always fails for the same reason is tried once a minute. */
const PAUSE_MAX_MS = 60_000

/** The services of modules, for a worker. */
export function servicesOf(modules: readonly LoadedModule[], deps: TurnServiceDeps): Service<unknown>[] {
  return modules.flatMap(({ parts }) =>
    (parts.services ?? []).map((each) => (each.runsIn === 'each' ? each.service : new TurnOfModule(deps, each))),
  )
}

/** Does slices of a module's work while this worker has the turn. */
class TurnOfModule extends TurnService<null> {
  override readonly name: string
  readonly #work: ModuleTurn

  constructor(deps: TurnServiceDeps, work: ModuleTurn) {
    super(deps, {
      turn: work.name,
      lookMs: LOOK_MS,
      pauseAfterFailureMs: PAUSE_AFTER_FAILURE_MS,
      pauseMaxMs: PAUSE_MAX_MS,
    })
    this.name = work.name
    this.#work = work
  }

  protected override async slice({ cursor: stored }: ClaimedTurn): Promise<Slice<null>> {
    // A slice of the same work wrote the cursor as JSON.
    const { cursor, restMs } = await this.#work.slice(stored as Json)
    if (!Number.isFinite(restMs) || restMs < 0) {
      throw new TypeError(`expected restMs to be a time of 0 ms or more, got ${String(restMs)}`)
    }
    return { counts: null, cursor, restMs }
  }
}
