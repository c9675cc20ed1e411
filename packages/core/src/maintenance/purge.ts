import { foundText, purgeRequestSchema } from '@carillon/api'
import type { z } from 'zod'

import type { Db, Tx } from '../db/database.ts'
import { SQLSTATE, sqlStateOf } from '../db/sqlstate.ts'
import { transactScoped } from '../db/transact.ts'
import { checkedObject } from '../kernel/checked-object.ts'
import { systemClock, type Clock } from '../kernel/clock.ts'
import { CarillonError } from '../kernel/errors.ts'
import { type Caller, type Scope, scopeOf } from '../kernel/scope.ts'
import { countModuleRows, deleteModuleRows, listModuleTables } from './store/module-rows.ts'
import {
  countProjectRows,
  countScheduleRows,
  deleteAttempts,
  deleteBacklogs,
  deleteChanges,
  deleteGrants,
  deleteIdempotentAnswers,
  deleteMembers,
  deleteRevisions,
  deleteRuns,
  deleteSecrets,
  deleteTranscripts,
  deleteWhole,
  findPurgeObstacles,
  lockRemovable,
  type RemovableSchedule,
  type PurgeCounts,
  type SchedulePage,
} from './store/purge.ts'

export type { PurgeCounts } from './store/purge.ts'

export interface ProjectsDeps {
  readonly db: Db
  readonly clock?: Clock
}

/** The project's name, as a confirmation. */
export type PurgeInput = z.input<typeof purgeRequestSchema>

/** What one transaction of a purge removed, and whether anything is left. */
interface Portion {
  readonly removed: Partial<PurgeCounts>
  readonly isLast: boolean
}

/** Removes up to `limit` rows of one table, and returns how many. */
type Remove = (limit: number) => Promise<number>

/** How many rows one transaction removes, so that none takes long. */
const ROWS_PER_PORTION = 5000
/** How many schedules one transaction locks. In each table it counts up to ROWS_PER_PORTION rows of each schedule. */
const SCHEDULES_PER_PORTION = 20
/** For how many schedules one statement counts rows. Each schedule may have a line per minute for the whole retention. */
const SCHEDULES_PER_COUNT = 50

const NOTHING: PurgeCounts = {
  schedules: 0,
  runs: 0,
  attempts: 0,
  transcriptLines: 0,
  changes: 0,
  revisions: 0,
  grants: 0,
  secrets: 0,
  members: 0,
  idempotentAnswers: 0,
  moduleRows: 0,
}

/**
 * Removes all data of a project whose schedules are deleted.
 *
 * Members that were removed or have a role below admin stay: without its row, such a subject would have the full role of its credential.
 * API keys stay: they are revoked one by one. Entries of the event log and findings of audits stay as well: they hold ids only, and
 * upkeep deletes them.
 */
export class Projects {
  readonly #db: Db
  readonly #clock: Clock

  constructor(deps: ProjectsDeps) {
    this.#db = deps.db
    this.#clock = deps.clock ?? systemClock
  }

  /**
   * Counts what a purge would remove once the schedules are deleted, including schedules that are not deleted yet. Not one snapshot,
   * because a ledger may be long: rows that are written during the count may be counted or not.
   */
  async previewPurge(caller: Caller): Promise<PurgeCounts> {
    const scope = scopeOf(caller)
    let total = added(NOTHING, await this.#transact(scope, (tx) => countProjectRows(tx, scope)))
    total = added(total, { moduleRows: await this.#transact(scope, (tx) => countRowsOfModules(tx, scope)) })
    let after: string | null = null
    do {
      const page: SchedulePage = { ...scope, after, limit: SCHEDULES_PER_COUNT }
      const { counts, last } = await this.#transact(scope, (tx) => countScheduleRows(tx, page))
      total = added(total, counts)
      after = last
    } while (after !== null)
    return total
  }

  /**
   * Removes everything, in portions. After a crash the next call removes the rest. Each call returns the counts of what it removed itself.
   * @throws CarillonError `purge_refused` unless `name` is the project's name; `state_conflict` while a schedule is not deleted or a
   * run is open. If a schedule is created during the purge, that schedule and the project's own rows stay complete
   */
  async purge(caller: Caller, input: PurgeInput): Promise<PurgeCounts> {
    const { name } = checkedObject(input, purgeRequestSchema)
    const scope = scopeOf(caller)
    if (name !== scope.projectId) throw notConfirmed(scope, name)
    await this.#transact(scope, (tx) => refuseWhileInUse(tx, scope))
    const ofSchedules = await this.#remove(scope, (tx) => purgeSchedules(tx, scope))
    const ofProject = await this.#remove(scope, (tx) => purgeRest(tx, scope))
    return added(ofSchedules, ofProject)
  }

  async #remove(scope: Scope, portion: (tx: Tx) => Promise<Portion>): Promise<PurgeCounts> {
    for (let total = NOTHING; ;) {
      const { removed, isLast } = await this.#transact(scope, portion)
      total = added(total, removed)
      if (isLast) return total
    }
  }

  #transact<Result>(scope: Scope, work: (tx: Tx) => Promise<Result>): Promise<Result> {
    return transactScoped(this.#db, this.#clock, scope, work)
  }
}

/**
 * Removes a portion of the schedules: as many as fit, with all their rows. A schedule with more rows than a portion loses its revisions
 * first: an audit in between then skips the schedule as unreadable. If the revisions were still there, it would restore removed lines.
 */
async function purgeSchedules(tx: Tx, scope: Scope): Promise<Portion> {
  const removable = await lockRemovable(tx, { ...scope, limit: SCHEDULES_PER_PORTION, rowsMax: ROWS_PER_PORTION })
  const [first] = removable
  if (first === undefined) return { removed: {}, isLast: true }
  const scheduleIds = fitting(removable)
  if (scheduleIds.length > 0) return { removed: await deleteWhole(tx, { ...scope, scheduleIds }), isLast: false }
  const of = { ...scope, scheduleId: first.id }
  const removed = await removeInTurn({
    revisions: (limit) => deleteRevisions(tx, { ...of, limit }),
    // Once the backlogs are gone, the backlog writer adds no more lines.
    backlogs: (limit) => deleteBacklogs(tx, { ...of, limit }),
    transcriptLines: (limit) => deleteTranscripts(tx, { ...of, limit }),
    attempts: (limit) => deleteAttempts(tx, { ...of, limit }),
    runs: (limit) => deleteRuns(tx, { ...of, limit }),
    changes: (limit) => deleteChanges(tx, { ...of, limit }),
  })
  return { removed, isLast: false }
}

/** The first schedules whose rows fit one portion together. The row of each schedule itself counts as well. */
function fitting(removable: readonly RemovableSchedule[]): string[] {
  const scheduleIds: string[] = []
  let room = ROWS_PER_PORTION
  for (const { id, rows } of removable) {
    room -= rows + 1
    if (room < 0) break
    scheduleIds.push(id)
  }
  return scheduleIds
}

/**
 * Removes a portion of what belongs to the project itself. Grants come first, because every schedule refers to one: if there is a new
 * schedule, the foreign key refuses to delete its grant, and nothing else is removed.
 */
async function purgeRest(tx: Tx, scope: Scope): Promise<Portion> {
  try {
    const removed = await removeInTurn({
      grants: (limit) => deleteGrants(tx, { ...scope, limit }),
      moduleRows: (limit) => deleteRowsOfModules(tx, { ...scope, limit }),
      secrets: (limit) => deleteSecrets(tx, { ...scope, limit }),
      members: (limit) => deleteMembers(tx, { ...scope, limit }),
      idempotentAnswers: (limit) => deleteIdempotentAnswers(tx, { ...scope, limit }),
    })
    const rows = Object.values(removed).reduce((sum, count) => sum + count, 0)
    // A portion that reached its limit may have left rows.
    return { removed, isLast: rows < ROWS_PER_PORTION }
  } catch (error) {
    // A schedule was created after the check.
    if (sqlStateOf(error) === SQLSTATE.foreignKeyViolation) throw inUse()
    throw error
  }
}

async function countRowsOfModules(tx: Tx, scope: Scope): Promise<number> {
  let rows = 0
  for (const table of await listModuleTables(tx)) rows += await countModuleRows(tx, { ...scope, table })
  return rows
}

/** Removes up to `limit` rows, from one table of a module after the other. */
async function deleteRowsOfModules(tx: Tx, { limit, ...scope }: Scope & { limit: number }): Promise<number> {
  let rows = 0
  for (const table of await listModuleTables(tx)) {
    if (rows >= limit) break
    rows += await deleteModuleRows(tx, { ...scope, table, limit: limit - rows })
  }
  return rows
}

/** Removes rows from one table after the other, until the portion has ROWS_PER_PORTION rows. */
async function removeInTurn<Name extends keyof PurgeCounts | 'backlogs'>(
  tables: Readonly<Record<Name, Remove>>,
): Promise<Partial<Record<Name, number>>> {
  const removed: Partial<Record<Name, number>> = {}
  let room = ROWS_PER_PORTION
  // TypeScript types the keys of an object as string.
  for (const name of Object.keys(tables) as Name[]) {
    const rows = await tables[name](room)
    removed[name] = rows
    room -= rows
    if (room <= 0) break
  }
  return removed
}

function added(a: PurgeCounts, b: Partial<PurgeCounts>): PurgeCounts {
  return {
    schedules: a.schedules + (b.schedules ?? 0),
    runs: a.runs + (b.runs ?? 0),
    attempts: a.attempts + (b.attempts ?? 0),
    transcriptLines: a.transcriptLines + (b.transcriptLines ?? 0),
    changes: a.changes + (b.changes ?? 0),
    revisions: a.revisions + (b.revisions ?? 0),
    grants: a.grants + (b.grants ?? 0),
    secrets: a.secrets + (b.secrets ?? 0),
    members: a.members + (b.members ?? 0),
    idempotentAnswers: a.idempotentAnswers + (b.idempotentAnswers ?? 0),
    moduleRows: a.moduleRows + (b.moduleRows ?? 0),
  }
}

async function refuseWhileInUse(tx: Tx, scope: Scope): Promise<void> {
  const obstacles = await findPurgeObstacles(tx, scope)
  if (obstacles.hasSchedules) throw inUse()
  if (!obstacles.hasOpenRuns) return
  throw new CarillonError(
    'state_conflict',
    'expected a project without open runs, got one that has some: wait for them, or cancel them',
  )
}

function inUse(): CarillonError {
  return new CarillonError(
    'state_conflict',
    "expected a project without schedules, got one that has some: delete the project's schedules first",
  )
}

function notConfirmed({ projectId }: Scope, name: string): CarillonError {
  const message = `expected the name of the project, ${foundText(projectId)}, got ${foundText(name)}: nothing was removed`
  return new CarillonError('purge_refused', `name: ${message}`, { problems: [{ path: 'name', message }] })
}
