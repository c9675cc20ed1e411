import type { Operation } from '@carillon/api'
import type { Meter } from '@opentelemetry/api'
import type { z } from 'zod'

import type { Db, Tx } from '../db/database.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Events } from '../kernel/events.ts'
import type { Json } from '../kernel/json.ts'
import type { Scope } from '../kernel/scope.ts'
import type { Service } from '../kernel/service.ts'
import type { OutboundClient } from './outbound.ts'
import type { RunsPort } from './runs.ts'
import type { SecretStore } from './secret-store.ts'
import type { Target } from './target.ts'

/** The version of this port. A module that was made for another one is refused at start. */
export const MODULE_PORT = 1

/** Names a port that one module provides and others use, with its type. Exported from a light file of the module that provides it. */
export interface PortToken<Port> {
  readonly name: string
  /** Never set; carries the type. */
  readonly port?: Port
}

/**
 * What is known of a module without loading its code. Server, CLI and `carillon migrate` read the manifests of all modules; `load` is
 * called only by a process that serves one of its kinds or operations.
 */
export interface ModuleManifest<Settings extends object = object> {
  readonly port: typeof MODULE_PORT
  /** `[a-z][a-z0-9_]{0,30}`: what its tables, metrics, settings and reasons of its own belong to. */
  readonly name: string
  readonly version: string
  /** The kinds of targets that it brings. A kind belongs to one module. */
  readonly kinds?: readonly string[]
  /** Folder of numbered SQL of its own, applied after core's in the same schema. Its tables begin with its name and an underscore. */
  readonly migrations?: URL
  /** Why its runs may be refused, each with the sentence shown to people. Never removed once released. */
  readonly reasons?: Readonly<Record<string, string>>
  /** Read from `CARILLON_<NAME>_<FIELD>` before `load`. A wrong one stops the start and names its variable. */
  readonly settings?: z.ZodObject
  /** What it offers over HTTP, by operation id. The one source of route, document, client and contract tests. */
  readonly operations?: Readonly<Record<string, Operation>>
  /** Commands of `carillon`, loaded when one of them, or the help, is asked for. */
  readonly commands?: () => Promise<{ readonly add: (program: unknown) => void }>
  readonly uses?: readonly PortToken<unknown>[]
  readonly usesIfThere?: readonly PortToken<unknown>[]
  readonly provides?: readonly PortToken<unknown>[]
  load(): Promise<{ readonly create: (deps: ModuleDeps<Settings>) => ModuleParts | Promise<ModuleParts> }>
}

/** A manifest of a module with any settings, for lists. */
export type AnyManifest = ModuleManifest<never>

/** A module whose code is loaded, and what it brings to this process. */
export interface LoadedModule {
  readonly manifest: AnyManifest
  readonly parts: ModuleParts
}

/** What a module brings to a process. All of it shares what `create` made. */
export interface ModuleParts {
  readonly targets?: readonly Target[]
  /** Loops of a worker, supervised like core's own. */
  readonly services?: readonly ModuleService[]
  /** One handler for each operation of the manifest. */
  readonly handlers?: Readonly<Record<string, ModuleHandler>>
  /** What is no operation: a webhook of a bot, a protocol of its own. Behind the same limits, headers and log lines. */
  readonly rawRoutes?: readonly RawRoute[]
  /** One for each token of `provides`, by its name. */
  readonly ports?: Readonly<Record<string, unknown>>
  /** What should hold in its tables: asked by the doctor and by the auditor. */
  readonly checks?: readonly ModuleCheck[]
  close?(): Promise<void>
}

/** Work of a module in the background of the workers that serve one of its kinds. Reported by its name, which begins with the module's. */
export type ModuleService =
  /** In every such worker. */
  | { readonly runsIn: 'each'; readonly service: Service<unknown> }
  /** In one worker at a time. */
  | ({ readonly runsIn: 'one' } & ModuleTurn)

/**
 * Work in slices, by one worker at a time: its row in `service_turns` says who has the turn, when the next slice is due and where it continues.
 * A worker that was suspended in the middle of a slice stores no cursor, so what a slice writes must be repeatable.
 */
export interface ModuleTurn {
  readonly name: string
  /** Does a bounded part of the work, in less than 30 seconds. The first cursor is null. */
  slice(cursor: Json): Promise<{
    readonly cursor: Json
    /** Time until the next slice is due. */
    readonly restMs: number
  }>
}

/** A request to an operation of a module, after its caller was authenticated and its input parsed. */
export interface ModuleCall {
  /** Null for an operation whose handler proves its caller itself. */
  readonly caller: (Scope & { readonly subject: string }) | null
  readonly params: unknown
  readonly query: unknown
  readonly headers: unknown
  readonly body: unknown
}

export type ModuleHandler = (call: ModuleCall) => Promise<{
  readonly body: unknown
  readonly headers?: Readonly<Record<string, string>>
  /** @default the status of the operation */
  readonly status?: number
}>

export interface RawRoute {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** From the root, with parameters in braces: `/telegram/{bot}/webhook`. */
  readonly path: string
  /** Proves its caller itself. The body was read already, up to the limit of every body. */
  readonly handle: (request: Request, params: Readonly<Record<string, string>>) => Promise<Response>
}

export interface ModuleCheck {
  readonly name: string
  /** Reads a bounded number of rows behind a cursor, so that all of them are seen within a day. The first cursor is null. */
  look(tx: Tx, after: Json): Promise<{ readonly findings: readonly ModuleFinding[]; readonly next: Json }>
}

export interface ModuleFinding {
  readonly kind: string
  readonly scope: Scope | null
  readonly detail: string
  /** What to do about it. */
  readonly remedy: string
}

/** What a module is made of. */
export interface ModuleDeps<Settings extends object = object> {
  readonly settings: Settings
  readonly clock: Clock
  /** Hints within this process; the ledger is the record. */
  readonly events: Events
  readonly meter: Meter
  readonly secrets: SecretStore
  readonly runs: RunsPort
  /** The one way to call an address that a tenant can choose. */
  readonly outbound: OutboundClient
  /** As a worker: across tenants, with the rights of the pipeline and of this module's tables. Undefined in a process without a worker. */
  readonly db: Db | undefined
  /**
   * One transaction in one tenant and project. Where the process serves the API, it runs as the API, which sees nothing else. In a process that
   * is only a worker it runs as the worker: of the tables of modules it sees the rows of that project, of core's tables all.
   */
  readonly transact: <Result>(scope: Scope, work: (tx: Tx) => Promise<Result>) => Promise<Result>
  /** The port of another module. @throws at start, not later, if no module provides it */
  readonly use: <Port>(token: PortToken<Port>) => Port
  readonly useIfThere: <Port>(token: PortToken<Port>) => Port | undefined
}
