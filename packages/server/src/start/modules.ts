import type { ModuleReasons } from '@carillon/api'
import {
  CarillonError,
  checkManifests,
  createDb,
  echoTarget,
  loadModules,
  MODULE_PORT,
  selectModules,
  sharedDeps,
  systemClock,
  VERSION,
  workerRole,
  type AnyManifest,
  type Db,
  type Events,
  type LoadedModules,
  type ModuleDbs,
  type ModuleNeeds,
  type SecretStore,
} from '@carillon/core'
import { httpModule } from '@carillon/http/manifest'
import type { Meter } from '@opentelemetry/api'

import { endPool, openPool } from './database.ts'
import { readModuleSettings, refuseUnknownVariables } from './module-settings.ts'
import { OperatorError } from './operator-error.ts'
import { createOutbound } from './outbound.ts'
import type { StartUp } from './service.ts'
import type { Settings } from './settings.ts'
import { importManifests } from './user-modules.ts'

/** The kind of core that calls nothing, for first steps. Every process serves it. */
const echoModule: AnyManifest = {
  port: MODULE_PORT,
  name: 'echo',
  version: VERSION,
  kinds: ['echo'],
  load: () => Promise.resolve({ create: () => ({ targets: [echoTarget] }) }),
}

/** The modules that every Carillon has. */
const BUILT_IN: readonly AnyManifest[] = [httpModule, echoModule]

/** A process that serves the API: all kinds, because it checks and shows targets of each. */
export const SERVER_NEEDS: ModuleNeeds = { kinds: 'all', operations: true }

/** A worker that serves these kinds and the echo. @param kinds as the operator names them; none is refused */
export function workerNeeds(kinds: readonly string[]): ModuleNeeds {
  return { kinds: kinds.length === 0 ? [] : [...new Set([...kinds, 'echo'])], operations: false }
}

/** Connections of the pool that the modules of a worker share. */
const MODULE_CONNECTIONS = 4

/** The secret store of a server, which validates targets but never calls them. */
export const NO_SECRETS: SecretStore = {
  resolve: () => Promise.reject(new Error('expected a worker to resolve a secret, got a server')),
}

/** The modules of an installation, and what this process needs of them. No code of a module is loaded yet. */
export interface ModulePlan {
  readonly manifests: readonly AnyManifest[]
  readonly needs: ModuleNeeds
  /** Of the modules that the process needs, by name. */
  readonly settings: ReadonlyMap<string, object>
  readonly reasons: ModuleReasons
}

/**
 * The manifests of the built-in modules and of those that users bring.
 * @throws OperatorError `module_refused`
 */
export async function readManifests({ modules, folder }: Settings): Promise<readonly AnyManifest[]> {
  const manifests = [...BUILT_IN, ...(await importManifests(modules, folder))]
  return asOperator(() => checkManifests(manifests))
}

/**
 * Reads the manifests of all modules, and the settings of those that the process needs.
 * @throws OperatorError which names the module, the variable or the flag at fault
 */
export async function planModules(settings: Settings, needs: ModuleNeeds): Promise<ModulePlan> {
  const manifests = await readManifests(settings)
  const selected = asOperator(() => selectModules(manifests, needs))
  refuseUnknownVariables(settings.variables, manifests)
  return {
    manifests,
    needs,
    settings: new Map(selected.map((manifest) => [manifest.name, readModuleSettings(settings.variables, manifest)])),
    reasons: Object.assign({}, ...manifests.map(({ reasons = {} }) => reasons)) as ModuleReasons,
  }
}

interface LoadParts {
  readonly settings: Settings
  readonly plan: ModulePlan
  readonly dbs: ModuleDbs
  readonly secrets: SecretStore
  readonly events: Events
  readonly meter: Meter
}

/** Loads the modules of a plan. They and their client are closed when the process stops. */
export async function loadPlanned(
  start: Pick<StartUp, 'defer'>,
  { settings, plan, dbs, secrets, events, meter }: LoadParts,
): Promise<LoadedModules> {
  const outbound = createOutbound(settings)
  start.defer(() => outbound.close())
  const loaded = await asOperator(() =>
    loadModules({
      ...plan,
      deps: sharedDeps(dbs, { clock: systemClock, events, meter, secrets, outbound }),
      settingsOf: ({ name }) => plan.settings.get(name) ?? {},
    }),
  )
  start.defer(() => loaded.close())
  return loaded
}

/** Opens the connections that the modules of a worker share. They assume the Postgres role of workers and no other (I9). */
export async function openModuleDb(
  start: Pick<StartUp, 'defer'>,
  { url, schema, events }: { readonly url: string; readonly schema: string; readonly events: Events },
): Promise<Db> {
  const pool = await openPool({
    url,
    schema,
    applicationName: 'carillon modules',
    role: workerRole(schema),
    maxConnections: MODULE_CONNECTIONS,
    onIdleError: (error) => events.emit('service.failed', { service: 'pool', error }),
  })
  start.defer(() => endPool(pool, systemClock))
  return createDb(pool)
}

/** Turns core's refusal of a module or of a kind into an error for the operator. */
export function asOperator<Result>(work: () => Result): Result {
  const refuse = (error: unknown): never => {
    if (!(error instanceof CarillonError)) throw error
    if (error.code === 'unknown_target_kind') throw operatorError(error.code, `--targets: ${error.message}`, error)
    throw error.code === 'module_refused' ? operatorError(error.code, error.message, error) : error
  }
  try {
    const result = work()
    // Of a promise: the same result type.
    return result instanceof Promise ? (result.catch(refuse) as Result) : result
  } catch (error) {
    return refuse(error)
  }
}

function operatorError(code: 'unknown_target_kind' | 'module_refused', message: string, cause: unknown): OperatorError {
  return new OperatorError(code, message, { cause })
}
