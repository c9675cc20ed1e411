import { z } from 'zod'

import type { Caller } from '../caller.ts'
import { systemClock, type Clock } from '../clock.ts'
import { CarillonError } from '../errors.ts'
import { placeOf } from '../place.ts'
import { foundText } from '../policy/found-text.ts'
import type { Db, Tx } from '../store/database.ts'
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
  deleteWhole,
  findPurgeObstacles,
  lockDoomed,
  type DoomedSchedule,
  type PurgeCounts,
  type SchedulePage,
} from '../store/purged-projects.ts'
import { SQLSTATE, sqlStateOf } from '../store/sqlstate.ts'
import { transactWithin, type Place } from '../store/walled-transaction.ts'
import { checkedObject, expected } from './checked-object.ts'

export interface ProjectsDeps {
  readonly db: Db
  readonly clock?: Clock
}

export interface PurgeInput {
  /** The project's name, once more. */
  readonly confirm: string
}

/** What one transaction of a purge removed; whether it left something for the next. */
interface Portion {
  readonly removed: Partial<PurgeCounts>
  readonly isLast: boolean
}

/** Removes up to so many rows of one table, and says how many. */
type Remove = (limit: number) => Promise<number>

/** How many rows one transaction removes, so that none takes long. */
const ROWS_PER_PORTION = 5000
/** At how many one transaction looks: of each it counts up to a portion. */
const SCHEDULES_PER_PORTION = 20
/** How many schedules' lines one statement counts: of each a quarter of a year, minute by minute. */
const SCHEDULES_PER_COUNT = 50

const NOTHING: PurgeCounts = {
  schedules: 0,
  runs: 0,
  attempts: 0,
  changes: 0,
  revisions: 0,
  grants: 0,
  secrets: 0,
  members: 0,
  idempotentAnswers: 0,
}

const PURGE_INPUT = z.strictObject({ confirm: z.string(expected("the project's name")) }, expected('an object'))

/**
 * The end of a project (E-59): after its schedules were deleted, whatever is left of it is removed for good.
 *
 * What decides who may come in stays, for without it somebody who was kept out would be let in: API keys, which are revoked
 * one by one, and the rows of members that were removed or may only read. So do entries of the feed and findings of audits,
 * which hold ids only and are forgotten anyway.
 */
export class Projects {
  readonly #db: Db
  readonly #clock: Clock

  constructor(deps: ProjectsDeps) {
    this.#db = deps.db
    this.#clock = deps.clock ?? systemClock
  }

  /**
   * Counts what a purge would remove once the schedules are deleted, live ones included. Not as of one instant: a ledger may
   * be long, and what is written meanwhile may be counted or not.
   */
  async previewPurge(caller: Caller): Promise<PurgeCounts> {
    const place = placeOf(caller)
    let total = added(NOTHING, await this.#transact(place, (tx) => countProjectRows(tx, place)))
    let after: string | null = null
    do {
      const page: SchedulePage = { ...place, after, limit: SCHEDULES_PER_COUNT }
      const { counts, last } = await this.#transact(place, (tx) => countScheduleRows(tx, page))
      total = added(total, counts)
      after = last
    } while (after !== null)
    return total
  }

  /**
   * Removes everything, in portions. What a crash leaves behind the next call removes; each tells what it removed itself.
   * @throws CarillonError `purge_refused` unless `confirm` is the project's name, `state_conflict` while a schedule is not
   * deleted or a run not over, also if one comes to be meanwhile: then it stays whole, and so do the project's own rows
   */
  async purge(caller: Caller, input: PurgeInput): Promise<PurgeCounts> {
    const { confirm } = checkedObject(input, PURGE_INPUT)
    const place = placeOf(caller)
    if (confirm !== place.projectId) throw notConfirmed(place, confirm)
    await this.#transact(place, (tx) => refuseWhileInUse(tx, place))
    const ofSchedules = await this.#remove(place, (tx) => purgeSchedules(tx, place))
    const ofProject = await this.#remove(place, (tx) => purgeRest(tx, place))
    return added(ofSchedules, ofProject)
  }

  async #remove(place: Place, portion: (tx: Tx) => Promise<Portion>): Promise<PurgeCounts> {
    for (let total = NOTHING; ;) {
      const { removed, isLast } = await this.#transact(place, portion)
      total = added(total, removed)
      if (isLast) return total
    }
  }

  #transact<Result>(place: Place, work: (tx: Tx) => Promise<Result>): Promise<Result> {
    return transactWithin(this.#db, this.#clock, place, work)
  }
}

/**
 * A portion of what belongs to schedules: as many as fit, with all that they have. One that does not fit is made smaller
 * first, its revisions before all: an audit that comes in between passes over a spec that it cannot read, where it would
 * take missing lines for lost slots and write them.
 */
async function purgeSchedules(tx: Tx, place: Place): Promise<Portion> {
  const doomed = await lockDoomed(tx, { ...place, limit: SCHEDULES_PER_PORTION, rowsMax: ROWS_PER_PORTION })
  const [first] = doomed
  if (first === undefined) return { removed: {}, isLast: true }
  const scheduleIds = fitting(doomed)
  if (scheduleIds.length > 0) return { removed: await deleteWhole(tx, { ...place, scheduleIds }), isLast: false }
  const of = { ...place, scheduleId: first.id }
  const removed = await removeInTurn({
    revisions: (limit) => deleteRevisions(tx, { ...of, limit }),
    // Without these no writer adds lines behind the purge.
    backlogs: (limit) => deleteBacklogs(tx, { ...of, limit }),
    attempts: (limit) => deleteAttempts(tx, { ...of, limit }),
    runs: (limit) => deleteRuns(tx, { ...of, limit }),
    changes: (limit) => deleteChanges(tx, { ...of, limit }),
  })
  return { removed, isLast: false }
}

/** The first of them, as long as they fit one portion together; the schedules themselves count as well. */
function fitting(doomed: readonly DoomedSchedule[]): string[] {
  const scheduleIds: string[] = []
  let room = ROWS_PER_PORTION
  for (const { id, rows } of doomed) {
    room -= rows + 1
    if (room < 0) break
    scheduleIds.push(id)
  }
  return scheduleIds
}

/**
 * A portion of what belongs to the project itself. Grants first: each schedule has one, so the keys of the database refuse,
 * and nothing else is removed, if there is a schedule that nobody saw.
 */
async function purgeRest(tx: Tx, place: Place): Promise<Portion> {
  try {
    const removed = await removeInTurn({
      grants: (limit) => deleteGrants(tx, { ...place, limit }),
      secrets: (limit) => deleteSecrets(tx, { ...place, limit }),
      members: (limit) => deleteMembers(tx, { ...place, limit }),
      idempotentAnswers: (limit) => deleteIdempotentAnswers(tx, { ...place, limit }),
    })
    const rows = Object.values(removed).reduce((sum, count) => sum + count, 0)
    // A full portion may have left something.
    return { removed, isLast: rows < ROWS_PER_PORTION }
  } catch (error) {
    // Somebody made a schedule after they were looked for.
    if (sqlStateOf(error) === SQLSTATE.foreignKeyViolation) throw inUse()
    throw error
  }
}

/** From one table after the other, until the portion is full. */
async function removeInTurn<Name extends keyof PurgeCounts | 'backlogs'>(
  tables: Readonly<Record<Name, Remove>>,
): Promise<Partial<Record<Name, number>>> {
  const removed: Partial<Record<Name, number>> = {}
  let room = ROWS_PER_PORTION
  // The names of an object are texts to TypeScript.
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
    changes: a.changes + (b.changes ?? 0),
    revisions: a.revisions + (b.revisions ?? 0),
    grants: a.grants + (b.grants ?? 0),
    secrets: a.secrets + (b.secrets ?? 0),
    members: a.members + (b.members ?? 0),
    idempotentAnswers: a.idempotentAnswers + (b.idempotentAnswers ?? 0),
  }
}

async function refuseWhileInUse(tx: Tx, place: Place): Promise<void> {
  const obstacles = await findPurgeObstacles(tx, place)
  if (obstacles.hasSchedules) throw inUse()
  if (!obstacles.hasOpenRuns) return
  throw new CarillonError(
    'state_conflict',
    'expected a project in which nothing runs, got one with runs that are not over: wait for them, or cancel them',
  )
}

function inUse(): CarillonError {
  return new CarillonError(
    'state_conflict',
    "expected a project without schedules, got one that has some: delete the project's schedules first",
  )
}

function notConfirmed({ projectId }: Place, confirm: string): CarillonError {
  return new CarillonError(
    'purge_refused',
    `expected confirm to be the project's name, "${projectId}", got ${foundText(confirm)}: nothing was removed`,
  )
}
