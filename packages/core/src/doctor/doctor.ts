import { SecretCipher } from '../access/secret-cipher.ts'
import { countSecrets } from '../access/secrets.ts'
import { AUDIT_TURN, findLatestAudit } from '../audit/store/audits.ts'
import { countFindings } from '../audit/store/findings.ts'
import { createDb, type Db, type Pool } from '../db/database.ts'
import { migrationStatus, type MigrationStatus } from '../db/migrate.ts'
import { readTransactionTime } from '../db/now.ts'
import { schemaOf } from '../db/pool.ts'
import { findDrift } from '../db/schema-drift.ts'
import { readPostgresInfo } from '../db/server.ts'
import { readReached } from '../jobs/turn-service.ts'
import { type Clock, machineNow, systemClock } from '../kernel/clock.ts'
import { TZDATA_VERSION } from '../kernel/version.ts'
import { ageOfOldestBacklog } from '../ledger/backlogs.ts'
import { listWorkers, type WorkerRecord } from '../pipeline/store/workers.ts'
import type { AnyManifest, LoadedModule } from '../ports/module.ts'
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
import { examineModule } from './module-checks.ts'
import { countActiveKinds, listWaitingKinds } from './store/target-kinds.ts'

export type { WorkerRecord } from '../pipeline/store/workers.ts'

/** How many groups of findings the audit check names. A group is a kind of finding in one project. */
const FINDINGS_NAMED_MAX = 5

export interface DoctorDeps {
  readonly pool: Pool
  /** The schema that holds Carillon's tables. @default the schema of `createPool`, else 'carillon' */
  readonly schema?: string
  readonly clock?: Clock
  /** This machine's clock, in epoch milliseconds. @default the system's */
  readonly machineNow?: () => number
  /** The keys of `Secrets`; null: there are none. Without this field secrets are not checked. */
  readonly keys?: readonly Buffer[] | null
  /** The modules of the installation, whose migrations must be applied. @default none */
  readonly manifests?: readonly AnyManifest[]
  /** Those whose checks are made. @default none */
  readonly modules?: readonly LoadedModule[]
}

/** Checks the database, the workers and their services, and says what is wrong and what to do. Changes nothing. */
export class Doctor {
  readonly #pool: Pool
  readonly #db: Db
  readonly #clock: Clock
  readonly #machineNow: () => number
  readonly #keyIds: readonly string[] | undefined
  readonly #manifests: readonly AnyManifest[]
  readonly #modules: readonly LoadedModule[]

  /** @throws CarillonError `invalid_input` for a key that does not have 32 bytes */
  constructor(deps: DoctorDeps) {
    this.#pool = deps.pool
    this.#db = createDb(deps.pool, { schema: schemaOf(deps.pool, deps.schema) })
    this.#clock = deps.clock ?? systemClock
    this.#machineNow = deps.machineNow ?? machineNow
    this.#manifests = deps.manifests ?? []
    this.#modules = (deps.modules ?? []).filter(({ parts }) => (parts.checks ?? []).length > 0)
    this.#keyIds = deps.keys === undefined ? undefined : (deps.keys ?? []).map((key) => new SecretCipher([key]).keyId)
  }

  /**
   * Never throws: it reports a check that cannot be made as failed. If the database does not answer or is not migrated, only the checks
   * that do not need its tables are made.
   */
  async examine(): Promise<Check[]> {
    const answered = await this.#reach()
    if (!answered.isReached) return [answered.database]
    const schema = await examined('schema', () => this.#schema())
    // The other checks need tables that may not exist.
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
      ...(await this.#examineModules()),
    ]
  }

  /** Checks whether the given keys open the secrets of all tenants. Needs the worker's role: row-level security hides them from others. */
  examineSecrets(): Promise<Check> {
    return examined('secrets', async () => checkSecrets(await countSecrets(this.#db, { keyIds: this.#keyIds ?? [] })))
  }

  /** All workers that have a row, each with whether its lease still holds. */
  listWorkers(): Promise<WorkerRecord[]> {
    return listWorkers(this.#db, { now: this.#clock.databaseNow() })
  }

  async #examineModules(): Promise<Check[]> {
    const checks: Check[] = []
    for (const module of this.#modules) {
      checks.push(await examined(`module ${module.manifest.name}`, () => examineModule(this.#db, module)))
    }
    return checks
  }

  get #status(): Promise<MigrationStatus> {
    return migrationStatus(this.#pool, { schema: this.#db.schema, modules: this.#manifests })
  }

  async #reach(): Promise<{ isReached: false; database: Check } | { isReached: true; database: Check; clock: Check }> {
    try {
      // The first query may have to connect; the second one is timed.
      await readPostgresInfo(this.#db, { now: null })
      const askedAtMs = this.#clock.monotonicMs()
      const askedAt = this.#machineNow()
      const server = await readPostgresInfo(this.#db, { now: this.#clock.databaseNow() })
      const answeredInMs = this.#clock.monotonicMs() - askedAtMs
      // The best estimate is that Postgres read its clock half-way between the question and the answer.
      const skewMs = askedAt + answeredInMs / 2 - server.now
      return { isReached: true, database: checkDatabase(server, answeredInMs), clock: checkSkew(skewMs) }
    } catch (error) {
      const message = `expected a database that answers, got "${errorText(error)}": start it, or correct its address`
      return { isReached: false, database: { name: 'database', status: 'failed', message } }
    }
  }

  async #isOutdated(): Promise<boolean> {
    try {
      return (await this.#status).pending.length > 0
    } catch {
      // The schema check reports why.
      return false
    }
  }

  async #schema(): Promise<Check> {
    const status = await this.#status
    return checkSchema(status, status.pending.length === 0 ? await findDrift(this.#pool, this.#db.schema) : null)
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
      now: await readTransactionTime(this.#db, now),
    })
  }
}

async function examined(name: Check['name'], examine: () => Promise<Check>): Promise<Check> {
  try {
    return await examine()
  } catch (error) {
    return { name, status: 'failed', message: `could not be checked: ${errorText(error)}` }
  }
}

/** A connection attempt to several addresses fails with an error that has only a code. */
function errorText(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error.message !== '') return error.message
  return 'code' in error ? String(error.code) : error.name
}
