import { systemClock, type Clock } from '../clock.ts'
import { SecretCipher } from '../secret-cipher.ts'
import { countActiveKinds } from '../store/active-kinds.ts'
import { AUDIT_TURN, countFindings, findLatestAudit } from '../store/audits.ts'
import { createDb, type Db } from '../store/database.ts'
import { migrationStatus } from '../store/migrate.ts'
import { readNow } from '../store/now.ts'
import { findDrift } from '../store/schema-drift.ts'
import { countSecrets } from '../store/secrets.ts'
import { askServer } from '../store/server.ts'
import { readReached } from '../store/service-turns.ts'
import { ageOfOldestBacklog } from '../store/slot-backlogs.ts'
import { listWaitingKinds } from '../store/waiting-kinds.ts'
import { listWorkers, type WorkerRecord } from '../store/workers.ts'
import { TZDATA_VERSION } from '../version.ts'
import {
  checkAudit,
  checkDatabase,
  checkRuns,
  checkSchema,
  checkSecrets,
  checkServices,
  checkSkew,
  checkTzdata,
  checkWorkers,
  type Check,
} from './checks.ts'
import { machineNow } from './clock.ts'

type Pool = Parameters<typeof createDb>[0]

/** Of the kinds and projects of findings. */
const FINDINGS_NAMED_MAX = 5

export interface DoctorDeps {
  readonly pool: Pool
  readonly clock?: Clock
  /** This machine's clock, in epoch milliseconds. @default the system's */
  readonly machineNow?: () => number
  /** Those of `Secrets`; null: there is none. Without them nothing is said of secrets. */
  readonly keys?: readonly Buffer[] | null
}

/** Looks at a database and at those who use it, and says what is wrong and what to do. Changes nothing. */
export class Doctor {
  readonly #pool: Pool
  readonly #db: Db
  readonly #clock: Clock
  readonly #machineNow: () => number
  readonly #keyIds: readonly string[] | undefined

  /** @throws CarillonError `invalid_input` for a key that has not 32 bytes */
  constructor(deps: DoctorDeps) {
    this.#pool = deps.pool
    this.#db = createDb(deps.pool)
    this.#clock = deps.clock ?? systemClock
    this.#machineNow = deps.machineNow ?? machineNow
    this.#keyIds = deps.keys === undefined ? undefined : (deps.keys ?? []).map((key) => new SecretCipher([key]).keyId)
  }

  /** Never throws: what cannot be examined has failed. Of a database that does not answer, or is not of this version, only
   * that is said. */
  async examine(): Promise<Check[]> {
    const answered = await this.#reach()
    if (!answered.isReached) return [answered.database]
    const schema = await examined('schema', () => this.#schema())
    // Of tables that are not there nothing can be said.
    if (await this.#isOutdated()) return [answered.database, schema, answered.clock]
    return [
      answered.database,
      schema,
      answered.clock,
      await examined('tzdata', async () => checkTzdata(TZDATA_VERSION, await this.listWorkers())),
      await examined('workers', async () => checkWorkers(await this.listWorkers(), await countActiveKinds(this.#db))),
      await examined('runs', () => this.#runs()),
      await examined('services', async () => checkServices(await this.listWorkers())),
      await examined('audit', () => this.#audit()),
      ...(this.#keyIds === undefined ? [] : [await this.examineSecrets()]),
    ]
  }

  /** Whether the keys at hand open the secrets of all tenants; by whoever may act as a worker, because a wall hides them. */
  examineSecrets(): Promise<Check> {
    return examined('secrets', async () => checkSecrets(await countSecrets(this.#db, { keyIds: this.#keyIds ?? [] })))
  }

  /** The processes that keep the agenda, and whether each still lives. */
  listWorkers(): Promise<WorkerRecord[]> {
    return listWorkers(this.#db, { now: this.#clock.databaseNow() })
  }

  async #reach(): Promise<{ isReached: false; database: Check } | { isReached: true; database: Check; clock: Check }> {
    try {
      // The first question may have to connect; the second one is timed.
      await askServer(this.#db, { now: null })
      const askedAtMs = this.#clock.monotonicMs()
      const askedAt = this.#machineNow()
      const server = await askServer(this.#db, { now: this.#clock.databaseNow() })
      const answeredInMs = this.#clock.monotonicMs() - askedAtMs
      // It told the time half-way, as far as anybody can know.
      const skewMs = askedAt + answeredInMs / 2 - server.now
      return { isReached: true, database: checkDatabase(server, answeredInMs), clock: checkSkew(skewMs) }
    } catch (error) {
      const message = `expected a database that answers, got "${errorText(error)}": start it, or correct its address`
      return { isReached: false, database: { name: 'database', status: 'failed', message } }
    }
  }

  async #isOutdated(): Promise<boolean> {
    try {
      return (await migrationStatus(this.#pool)).pending.length > 0
    } catch {
      // The check of the schema has said why.
      return false
    }
  }

  async #schema(): Promise<Check> {
    const status = await migrationStatus(this.#pool)
    return checkSchema(status, status.pending.length === 0 ? await findDrift(this.#pool) : null)
  }

  async #runs(): Promise<Check> {
    const now = this.#clock.databaseNow()
    const waiting = await listWaitingKinds(this.#db, { now })
    return checkRuns(waiting, await this.listWorkers(), await ageOfOldestBacklog(this.#db, { now }))
  }

  async #audit(): Promise<Check> {
    const now = this.#clock.databaseNow()
    const latest = await findLatestAudit(this.#db, { now })
    const after = new Date(latest?.startedAt ?? 0)
    return checkAudit({
      latest,
      findings: await countFindings(this.#db, { after, limit: FINDINGS_NAMED_MAX, now }),
      auditedUntil: await readReached(this.#db, { name: AUDIT_TURN }),
      workers: await this.listWorkers(),
      now: await readNow(this.#db, now),
    })
  }
}

async function examined(name: Check['name'], examine: () => Promise<Check>): Promise<Check> {
  try {
    return await examine()
  } catch (error) {
    return { name, status: 'failed', message: `could not be examined: ${errorText(error)}` }
  }
}

/** An attempt at several addresses fails with an error that says nothing but its code. */
function errorText(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error.message !== '') return error.message
  return 'code' in error ? String(error.code) : error.name
}
