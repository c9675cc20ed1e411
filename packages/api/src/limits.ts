import { CADENCE_LIMITS } from '@carillon/cadence/words'

/*
 * Every limit of the contract. A limit stands here and nowhere else: the API documents it, the core and the targets enforce
 * it, the CLI shows it. A limit with `min` and `max` is the range of the setting of that name. A value beyond a limit is refused.
 * Lengths count UTF-16 code units, as `length` does.
 */

interface Range {
  readonly min: number
  readonly max: number
}

interface RangeWithDefault extends Range {
  readonly default: number
}

export const DAY_MS = 86_400_000

/** The last instant of the contract, in epoch milliseconds; the first is 1970-01-01. Cadences compute slots in these years. */
export const LAST_INSTANT_MS = Date.parse('9999-12-31T23:59:59.999Z')

/** How many items a client may ask for on one page of a list. */
export const PAGE_SIZE = { min: 1, max: 200, default: 50 } as const satisfies RangeWithDefault

/** How many slots a client may ask for when it lists the slots ahead. */
export const SLOT_COUNT = { min: 1, max: 1000, default: 50 } as const satisfies RangeWithDefault

/** How many slots a client may ask for in a preview of a cadence. */
export const PREVIEW_COUNT = { min: 1, max: 100, default: 5 } as const satisfies RangeWithDefault

/** The most problems that a refusal lists, so that a person can work through them. */
export const PROBLEMS_MAX = CADENCE_LIMITS.problems

/** The most schedules that one request may create or preview. */
export const SCHEDULES_PER_REQUEST_MAX = 1000

/** The most schedules that one `createMany` of core accepts. A longer transaction would lock the project's count for too long. */
export const CREATE_MANY_MAX = 5000

export const SCHEDULE_NAME_MAX_LENGTH = 200

/** The longest input of one schedule, as JSON text. Keep larger data where the target can read it by name. */
export const SCHEDULE_INPUT_MAX_LENGTH = 1_048_576

/** The longest body of a request: the longest input of a schedule, and 64 KiB for what surrounds it. */
export const REQUEST_BODY_MAX_BYTES = SCHEDULE_INPUT_MAX_LENGTH + 65_536

/** The most levels of nested lists and objects in a request body and in JSON that is stored. */
export const JSON_DEPTH_MAX = 100

export const PAUSE_REASON_MAX_LENGTH = 500

/** The `maxRuns` that a cadence may have: the number of slots after which it ends. */
export const CADENCE_MAX_RUNS = { min: 1, max: CADENCE_LIMITS.maxRuns } as const satisfies Range

/** The `maxRuns` that an interval of hours, minutes or seconds may have. */
export const INTERVAL_MAX_RUNS = { min: 1, max: CADENCE_LIMITS.intervalMaxRuns } as const satisfies Range

/** The most slots of one schedule that may be marked as skipped at the same time. */
export const SKIPPED_SLOTS_MAX = 100

/** How many seconds late a slot may begin. After that it is missed. */
export const STARTING_DEADLINE_SECONDS = { min: 1, max: 604_800, default: 300 } as const satisfies RangeWithDefault

/** How many failed runs in a row pause a schedule: not fewer than 3, because one or two are no pattern. 0 turns auto-pause off. */
export const AUTO_PAUSE_THRESHOLD = { min: 3, max: 100, default: 10 } as const satisfies RangeWithDefault

/** After how many runs a schedule is complete. */
export const RUN_LIMIT = { min: 1, max: 1_000_000_000 } as const satisfies Range

export const SPREAD_SECONDS = { min: 0, max: 3600, default: 0 } as const satisfies RangeWithDefault

/** How many attempts a run may have, the first included. */
export const RETRY_ATTEMPTS = { min: 1, max: 100 } as const satisfies Range

/** The range of the backoff before the second attempt, and of the cap of every backoff. */
export const BACKOFF_SECONDS = { min: 1, max: 86_400 } as const satisfies Range

/**
 * The default retry policy of a schedule with an HTTP target. The first backoffs outlast a restart of the called server. All nine
 * together, 2 h 15 min, outlast an outage.
 */
export const HTTP_RETRY = { maxAttempts: 10, baseSeconds: 30, capSeconds: 2160 } as const

/** The time limit of one attempt of an HTTP target. */
export const HTTP_TIMEOUT_SECONDS = { min: 1, max: 300, default: 30 } as const satisfies RangeWithDefault

/** For how long a run with an HTTP target waits to be completed by a callback. */
export const CALLBACK_TIMEOUT = { min: 'PT1S', max: 'P30D', default: 'PT1H' } as const

/** The longest header that carries the token of a callback. */
export const CALLBACK_TOKEN_MAX_LENGTH = 1000

/** The longest URL of an HTTP target, both as it is written and once it is percent-encoded. */
export const URL_MAX_LENGTH = 2048

export const HTTP_PAYLOAD_MAX_BYTES = 256 * 1024

/** The payload of an echo is the result of its run, so it may be as long as what the ledger keeps of an HTTP answer. */
export const ECHO_PAYLOAD_MAX_BYTES = 4096

/** Limits of the headers that a schedule may set. A Node server accepts 16 kB of request line and headers, Carillon's included. */
export const HTTP_HEADERS = { maxCount: 50, nameMaxLength: 128, valueMaxLength: 4096, totalMaxLength: 8192 } as const

export const IDEMPOTENCY_KEY_MAX_LENGTH = 255

/** The most ETags in one `If-Match` header. */
export const IF_MATCH_MAX = 10

/** The longest name in a typed subject: `user:<name>`. */
export const SUBJECT_NAME_MAX_LENGTH = 200

export const GRANT_SCOPES = { min: 1, max: 50 } as const satisfies Range

export const GRANT_SCOPE_MAX_LENGTH = 300

export const BILLING_ACCOUNT_MAX_LENGTH = 200

/** For how many days the ledger keeps its lines. A week at least: after a long weekend without workers, begin still writes every line. */
export const RETENTION_DAYS = { min: 7, max: 3650, default: 90 } as const

/** How many entries one read of the event log returns. */
export const EVENT_LOG_ENTRIES = { min: 1, max: 500, default: 100 } as const satisfies RangeWithDefault

/** How many bytes of JSON a worker keeps of the transcript of one run, over all attempts. A whole line always fits. */
export const TRANSCRIPT_BYTES = { min: 65_536, max: 16_777_216, default: 262_144 } as const satisfies RangeWithDefault

/** How many lines the transcript of one run may have. */
export const TRANSCRIPT_LINES_MAX = 10_000

/** The longest entry of a transcript. A longer one is cut. */
export const TRANSCRIPT_ENTRY_MAX_BYTES = 32_768

export const TRANSCRIPT_KIND_MAX_LENGTH = 100

/** How many lines of a transcript a client may ask for on one page. */
export const TRANSCRIPT_PAGE_SIZE = { min: 1, max: 500, default: 100 } as const satisfies RangeWithDefault

/** How many bytes of entries one page of a transcript holds, unless its first line alone is longer. */
export const TRANSCRIPT_PAGE_MAX_BYTES = 262_144

/** How many days before it expires a grant is shown with the warning `expires_soon`. */
export const GRANT_WARNING_DAYS = 7
export const GRANT_WARNING_MS = GRANT_WARNING_DAYS * DAY_MS

/** For how long a repaired lost slot still counts as a finding: its line exists by now, but the slot did not run. */
export const LOST_SLOT_SHOWN_MS = 1 * DAY_MS

export const SECRET_VALUE_MAX_LENGTH = 8192

/** In a list that is ordered by name: the longest name after which a page may start. */
export const PAGE_POSITION_MAX_LENGTH = 300

/*
 * What an installation's limits, and a tenant's own, may be set to. A default is the limit of an installation that sets none. The hosts
 * are the patterns of the hosts that the tenant's HTTP targets may call.
 */

/** How many active and paused schedules a project may have. */
export const PROJECT_SCHEDULES = { min: 1, max: 1_000_000, default: 500 } as const satisfies RangeWithDefault
/** How many of them each `user:…` may own. */
export const USER_SCHEDULES = { ...PROJECT_SCHEDULES, default: 50 } as const satisfies RangeWithDefault
export const TENANT_SLOT_DISTANCE_SECONDS = {
  min: 1,
  max: 86_400,
  default: CADENCE_LIMITS.minimumSeconds,
} as const satisfies RangeWithDefault
export const TENANT_REQUESTS_PER_MINUTE = {
  min: 1,
  max: 1_000_000_000,
  default: 60_000,
} as const satisfies RangeWithDefault
export const ALLOWED_HOSTS_MAX = 200
export const ALLOWED_HOST_MAX_LENGTH = 300
