import { createClient, type Client } from '@carillon/api'
import {
  Callbacks,
  createDb,
  EventLog,
  Grants,
  Keys,
  MembershipAuthorization,
  Members,
  Projects,
  Scheduler,
  Secrets,
  systemClock,
  Tenants,
  type Clock,
  type Db,
  type Target,
} from '@carillon/core'
import { createDatabase, type TestDatabase } from '@carillon/core/testing'
import { createHttpTarget } from '@carillon/http'
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'

import { createApp, type AppDeps } from '../../src/http/app.ts'
import { createLogger } from '../../src/start/log.ts'
import { NO_SECRETS } from '../../src/start/modules.ts'
import { hostProblems } from '../../src/start/outbound.ts'
import { injectFetch } from './inject-fetch.ts'

export const ADMIN_KEY = 'the-admin-key-of-this-very-test'

/** Without quotas, because a test of pages creates more schedules than a project may have. */
const WITHOUT_QUOTAS = { maxSchedulesPerProject: null, maxSchedulesPerUser: null }

/** One log line of the app. */
export type LogLine = Readonly<Record<string, unknown>>

type CoreDeps = 'scheduler' | 'keys' | 'grants' | 'members' | 'secrets' | 'tenants' | 'projects'

export interface TestAppOptions extends Partial<Omit<AppDeps, CoreDeps>> {
  /** The caller's own database, which the app does not drop. @default a new database */
  readonly database?: TestDatabase
  /** The database that core uses, if not `database` itself: behind a proxy, or unreachable. */
  readonly db?: Db
  /** Targets besides http, which may call this machine. */
  readonly targets?: readonly Target[]
  readonly minimumSeconds?: number
  /** The keys that encrypt secrets. Null: secrets cannot be stored. @default one key */
  readonly secretsKeys?: readonly Buffer[] | null
}

interface RequestOptions {
  /** Null: the request has no key. @default the admin key */
  readonly key?: string | null
  readonly headers?: Readonly<Record<string, string | string[]>>
  /** A string is sent as it is, any other value as JSON. */
  readonly body?: unknown
}

/** The app on a database of its own. Requests reach it without a port unless it listens. */
export interface TestApp extends AsyncDisposable {
  readonly app: FastifyInstance
  readonly database: TestDatabase
  readonly scheduler: Scheduler
  readonly keys: Keys
  readonly grants: Grants
  readonly eventLog: EventLog
  /** A client with the admin key. */
  readonly admin: Client
  readonly client: (key: string) => Client
  readonly request: (method: string, path: string, options?: RequestOptions) => Promise<LightMyRequestResponse>
  /** The log lines so far. */
  readonly log: readonly LogLine[]
  /** Listens on a free port of this machine, and returns the URL. */
  readonly listen: () => Promise<string>
}

export async function createTestApp(options: TestAppOptions = {}): Promise<TestApp> {
  const { database = await createDatabase(), clock = systemClock, ...rest } = options
  const { targets = [], minimumSeconds, secretsKeys = [Buffer.alloc(32, 7)], ...overrides } = rest
  const db = options.db ?? createDb(database.pool)
  const log: LogLine[] = []
  const core = createCore({ db, clock, targets, minimumSeconds, secretsKeys })
  const app = await createApp({
    ...core,
    clock,
    authorization: new MembershipAuthorization({ db, clock }),
    adminKey: ADMIN_KEY,
    version: '0.0.0-test',
    logger: createLogger({ logLevel: 'info' }, { write: (line) => void log.push(JSON.parse(line) as LogLine) }),
    renderMetrics: async () => '# nothing is counted\n',
    readiness: async () => [],
    ...overrides,
  })
  const client = (key: string): Client => createClient('http://carillon.test', key, { fetch: injectFetch(app) })
  return {
    ...core,
    app,
    database,
    client,
    admin: client(options.adminKey ?? ADMIN_KEY),
    request: (method, path, request) => inject(app, method, path, options.adminKey ?? ADMIN_KEY, request),
    log,
    listen: () => app.listen({ host: '127.0.0.1', port: 0 }),
    async [Symbol.asyncDispose]() {
      await app.close()
      if (options.database === undefined) await database[Symbol.asyncDispose]()
    },
  }
}

interface CoreParts {
  readonly db: Db
  readonly clock: Clock
  readonly targets: readonly Target[]
  readonly minimumSeconds: number | undefined
  readonly secretsKeys: readonly Buffer[] | null
}

function createCore({ db, clock, targets, minimumSeconds, secretsKeys: keys }: CoreParts) {
  const http = createHttpTarget({ allowedHosts: ['127.0.0.1', 'localhost'], secrets: NO_SECRETS })
  const known = new Map<string, Target>([http as Target, ...targets].map((target) => [target.kind, target]))
  return {
    callbacks: new Callbacks({ db, clock, targets: known }),
    scheduler: new Scheduler(
      { db, clock, targets: known },
      { ...WITHOUT_QUOTAS, ...(minimumSeconds === undefined ? {} : { minimumSeconds }) },
    ),
    keys: new Keys({ db, clock }),
    grants: new Grants({ db, clock }),
    members: new Members({ db, clock }),
    secrets: new Secrets({ db, clock, keys }),
    tenants: new Tenants({ db, clock, checkHosts: hostProblems }),
    projects: new Projects({ db, clock }),
    eventLog: new EventLog({ db, clock }),
  }
}

function inject(
  app: FastifyInstance,
  method: string,
  path: string,
  adminKey: string,
  { key = adminKey, headers = {}, body }: RequestOptions = {},
): Promise<LightMyRequestResponse> {
  return app.inject({
    method: method as 'GET',
    url: path,
    headers: {
      ...(key === null ? {} : { authorization: `Bearer ${key}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined
      ? {}
      : { payload: typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body) }),
  })
}
