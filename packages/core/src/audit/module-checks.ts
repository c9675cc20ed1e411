import { z } from 'zod'

import { readSnapshot } from '../db/transact.ts'
import { type ClaimedTurn, type Slice, TurnService, type TurnServiceDeps } from '../jobs/turn-service.ts'
import { identifierAt } from '../kernel/ids.ts'
import type { Json } from '../kernel/json.ts'
import type { LoadedModule, ModuleCheck, ModuleFinding } from '../ports/module.ts'
import { NO_COUNTS } from './findings.ts'
import { insertAudit } from './store/audits.ts'
import { insertModuleFindings, listSeenModuleFindings, type FoundByModule } from './store/module-findings.ts'

/** The time between two looks: 5,760 a day, so a module's checks have that many pages to see all of its rows. */
const LOOK_EVERY_MS = 15_000
const PAUSE_AFTER_FAILURE_MS = 1000
const PAUSE_MAX_MS = 60_000
/** Beyond this, one look stores no more findings: a badly damaged table must not fill the memory. */
const FINDINGS_PER_LOOK = 1000
const DETAIL_MAX_LENGTH = 2000

const CURSOR = z.object({ check: z.string(), after: z.json() })

/** Where the next look begins. */
interface Position {
  readonly check: ModuleCheck
  readonly after: Json
}

/** What a look found, as sentences, and where the next look of the same check begins; null after the last rows. */
export interface Looked {
  readonly found: readonly FoundByModule[]
  readonly next: Json
}

/**
 * Looks once. The transaction is read-only.
 * @throws TypeError if the check returns something else than findings
 */
export async function lookOnce(
  db: Parameters<typeof readSnapshot>[0],
  module: string,
  check: ModuleCheck,
  after: Json,
): Promise<Looked> {
  // A module may be plain JavaScript.
  const { findings, next } = (await readSnapshot(db, (tx) => check.look(tx, after))) as Partial<
    Awaited<ReturnType<ModuleCheck['look']>>
  >
  if (!Array.isArray(findings)) throw new TypeError(`expected findings of the check ${check.name}, got none`)
  const found = (findings as readonly ModuleFinding[])
    .slice(0, FINDINGS_PER_LOOK)
    .map(({ kind, scope, detail, remedy }) => ({
      tenantId: scope?.tenantId ?? null,
      projectId: scope?.projectId ?? null,
      detail: `${module} ${check.name}, ${kind}: ${detail}: ${remedy}`.slice(0, DETAIL_MAX_LENGTH),
    }))
  return { found, next: next ?? null }
}

/**
 * Makes the checks of one module, all the time: one look after the other, each check to its end and then the next. It runs in the workers
 * that have loaded the module, by one of them at a time. So its turn is not that of the auditor, which may be with a worker that has not.
 *
 * A fault that lasts is found again with each pass. It is stored again once a full audit has ended since, like other findings.
 */
export class ModuleChecks extends TurnService<{ readonly findings: number }> {
  override readonly name: string
  readonly #deps: TurnServiceDeps
  readonly #module: string
  readonly #checks: readonly [ModuleCheck, ...ModuleCheck[]]

  constructor(deps: TurnServiceDeps, module: string, checks: readonly [ModuleCheck, ...ModuleCheck[]]) {
    const name = `${module} checks`
    super(deps, {
      turn: name,
      lookMs: LOOK_EVERY_MS,
      pauseAfterFailureMs: PAUSE_AFTER_FAILURE_MS,
      pauseMaxMs: PAUSE_MAX_MS,
    })
    this.name = name
    this.#deps = deps
    this.#module = module
    this.#checks = checks
  }

  protected override async slice({ cursor, now }: ClaimedTurn): Promise<Slice<{ readonly findings: number }>> {
    const { db, clock, events } = this.#deps
    const { check, after } = this.#positionOf(cursor)
    const { found, next } = await lookOnce(db, this.#module, check, after)
    const seen = new Set((await listSeenModuleFindings(db, { details: found.map(({ detail }) => detail) })).map(nameOf))
    const findings = found.filter((finding) => !seen.has(nameOf(finding)))
    const id = identifierAt(now)
    return {
      counts: { findings: findings.length },
      cursor: next === null ? { check: this.#after(check).name, after: null } : { check: check.name, after: next },
      restMs: LOOK_EVERY_MS,
      write: async (tx) => {
        if (findings.length === 0) return
        const span = { from: now, to: now, startedAt: now, ...NO_COUNTS }
        await insertAudit(tx, {
          id,
          isWhole: false,
          ...span,
          findings: findings.length,
          repaired: 0,
          lost: 0,
          now: clock.databaseNow(),
        })
        await insertModuleFindings(tx, { auditId: id, findings, now: new Date(now) })
      },
      afterStored: () => {
        if (findings.length > 0) events.emit('audit.found', { findings: findings.length, repaired: 0 })
      },
    }
  }

  /** A cursor of a check that the module no longer has is forgotten. */
  #positionOf(cursor: unknown): Position {
    const stored = CURSOR.safeParse(cursor)
    const check = stored.success ? this.#checks.find(({ name }) => name === stored.data.check) : undefined
    return check === undefined || !stored.success
      ? { check: this.#checks[0], after: null }
      : { check, after: stored.data.after }
  }

  #after(check: ModuleCheck): ModuleCheck {
    return this.#checks[this.#checks.indexOf(check) + 1] ?? this.#checks[0]
  }
}

/** The services that make the checks of modules, for a worker. */
export function moduleChecks(modules: readonly LoadedModule[], deps: TurnServiceDeps): ModuleChecks[] {
  return modules.flatMap(({ manifest, parts }) => {
    const [first, ...rest] = parts.checks ?? []
    return first === undefined ? [] : [new ModuleChecks(deps, manifest.name, [first, ...rest])]
  })
}

function nameOf({ tenantId, projectId, detail }: FoundByModule): string {
  return JSON.stringify([tenantId, projectId, detail])
}
