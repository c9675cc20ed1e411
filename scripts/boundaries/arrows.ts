/** What the sources of one package may import and use. The boundary checks refuse everything else. */
interface PackageRule {
  /** Packages of this repository that it may import. */
  readonly packages: readonly string[]
  /** `anywhere` also runs in a browser, so no Node module may be imported. */
  readonly runtime: 'node' | 'anywhere'
  /** `injected`: only a `clock.ts` reads the time. `none`: no file does; the caller of the package passes the time. */
  readonly clock: 'injected' | 'none'
  /** The only packages from npm that it may import. Without this list it may import all that its package.json declares. */
  readonly npm?: readonly string[]
}

/**
 * The arrows between packages: an arrow means "may import". The checks refuse a package that is not listed here, and an arrow that no
 * file uses.
 */
export const PACKAGE_RULES: Readonly<Record<string, PackageRule>> = {
  cadence: { packages: [], runtime: 'anywhere', clock: 'none' },
  postgres: { packages: [], runtime: 'node', clock: 'injected' },
  core: { packages: ['api', 'cadence'], runtime: 'node', clock: 'injected' },
  api: { packages: ['cadence'], runtime: 'anywhere', clock: 'none', npm: ['zod', 'eventsource-parser'] },
  outbound: { packages: ['api', 'core'], runtime: 'node', clock: 'injected' },
  http: { packages: ['api', 'core', 'outbound'], runtime: 'node', clock: 'injected' },
  server: { packages: ['core', 'outbound', 'http', 'api', 'postgres'], runtime: 'node', clock: 'injected' },
  cli: { packages: ['api', 'server'], runtime: 'node', clock: 'injected' },
  web: { packages: ['api', 'cadence'], runtime: 'anywhere', clock: 'injected' },
}

/**
 * The arrows between the rooms of a package: what each folder of `src` may import besides itself. A folder below a room belongs to it.
 * Files directly in `src` belong to no room. An import through such a file counts as an import of everything behind it, so
 * no room can reach upwards through the facade. In core the facade is `scheduler.ts`, `worker.ts` and `index.ts`; besides the doctor, it
 * alone imports the pipeline.
 */
export const ROOMS: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  core: {
    kernel: [],
    db: ['kernel'],
    ports: ['kernel', 'db'],
    policy: ['kernel', 'ports'],
    targets: ['kernel', 'ports'],
    cadences: ['kernel', 'policy'],
    jobs: ['kernel', 'db'],
    ledger: ['kernel', 'db', 'ports', 'policy', 'cadences'],
    access: ['kernel', 'db', 'ports', 'policy', 'ledger'],
    schedules: ['kernel', 'db', 'ports', 'policy', 'cadences', 'ledger', 'access'],
    pipeline: ['kernel', 'db', 'ports', 'policy', 'cadences', 'ledger', 'access'],
    'event-log': ['kernel', 'db', 'ledger', 'schedules'],
    audit: ['kernel', 'db', 'ports', 'policy', 'cadences', 'jobs'],
    modules: ['kernel', 'db', 'ports', 'ledger', 'jobs'],
    maintenance: ['kernel', 'db', 'policy', 'ledger', 'jobs', 'schedules', 'event-log', 'audit'],
    doctor: ['kernel', 'db', 'ports', 'ledger', 'jobs', 'access', 'audit', 'pipeline'],
  },
  cadence: {
    time: [],
    rules: ['time'],
    slots: ['time', 'rules'],
    input: ['time', 'rules', 'slots'],
    cron: ['time', 'rules', 'input'],
    rrule: ['time', 'rules', 'slots', 'input'],
    english: ['time', 'rules', 'slots', 'cron', 'rrule'],
    kinds: ['time', 'rules', 'slots', 'input', 'cron', 'rrule', 'english'],
  },
  outbound: {
    guard: [],
  },
  http: {
    auth: [],
  },
  server: {
    auth: [],
    events: ['auth'],
    http: ['auth', 'events'],
    start: ['auth', 'http'],
  },
  cli: {
    output: [],
    process: ['output'],
    init: [],
    options: ['process'],
    service: ['process', 'output'],
    import: ['service', 'options', 'process', 'output'],
    commands: ['init', 'import', 'service', 'options', 'process', 'output'],
  },
}

/** Packages and files with which statements are written and sent. Only files that may contain SQL may import them. */
export const SQL_PACKAGES: readonly string[] = ['pg']
export const SQL_FILES: readonly string[] = ['packages/core/src/db/sql.ts']

/** The files that call out without the guarded client of `packages/outbound`, each with the reason why no tenant chooses the address. */
export const OUTBOUND_CALLERS: Readonly<Record<string, string>> = {
  'packages/api/src/transport.ts': "calls the API at the URL that the client's user sets; runs in browsers too",
  'packages/cli/src/import/idempotent-create.ts': "is a client of the API at the command's own URL",
  'packages/cli/src/service/follow-events.ts': "is a client of the API at the command's own URL",
  'packages/server/src/auth/fetch-json.ts': 'calls the issuer of tokens and OpenFGA, whose URLs the operator sets',
}

/** Files of so few lines that have one importer belong into it. */
export const SMALL_FILE_LINES = 30

/** Rooms that may import any room's `store/`: the doctor only reads, and reads every table. */
export const STORE_READERS: readonly string[] = ['doctor']
