import { LIMITS } from '@carillon/cadence/words'

/*
 * Every limit of the contract. A limit stands here and nowhere else: the API documents it, the core and the targets enforce
 * it, the CLI shows it. A limit with `min` and `max` is the range of the setting of that name. Lengths count UTF-16 code units,
 * as `length` does.
 */

interface Range {
  readonly min: number
  readonly max: number
}

interface RangeWithDefault extends Range {
  readonly default: number
}

/** Instants lie between 1970 and this one: the years that cadences can compute. */
export const LAST_INSTANT_MS = Date.parse('9999-12-31T23:59:59.999Z')

/** Items on a page of a list. */
export const PAGE_SIZE = { min: 1, max: 200, default: 50 } as const satisfies RangeWithDefault

/** Slots in an answer to "list slots ahead". */
export const SLOT_COUNT = { min: 1, max: 1000, default: 50 } as const satisfies RangeWithDefault

/** Slots in a preview of a cadence. */
export const PREVIEW_COUNT = { min: 1, max: 100, default: 5 } as const satisfies RangeWithDefault

/** Schedules in one batch. */
export const BATCH_MAX = 1000

export const SCHEDULE_NAME_MAX_LENGTH = 200

/** Of a schedule's whole input as JSON text. Keep larger data where the target can read it by name. */
export const SCHEDULE_INPUT_MAX_LENGTH = 1_048_576

/** Levels of nesting in JSON that is stored. */
export const JSON_DEPTH_MAX = 100

export const PAUSE_REASON_MAX_LENGTH = 500

/** Slots that a cadence with `maxRuns` may ask for. */
export const CADENCE_RUNS = { min: 1, max: LIMITS.maxRuns } as const satisfies Range

/** The same for an interval of hours, minutes or seconds. */
export const INTERVAL_RUNS = { min: 1, max: LIMITS.intervalMaxRuns } as const satisfies Range

/** Slots of one schedule that are to be skipped. */
export const SKIPPED_SLOTS_MAX = 100

/** How late a slot may begin before it is missed. */
export const STARTING_DEADLINE_SECONDS = { min: 1, max: 604_800, default: 300 } as const satisfies RangeWithDefault

/** Failed runs in a row that pause a schedule. 0 turns it off: one or two failures are no pattern. */
export const AUTO_PAUSE_THRESHOLD = { min: 3, max: 100, default: 10 } as const satisfies RangeWithDefault

export const SPREAD_SECONDS = { min: 0, max: 3600, default: 0 } as const satisfies RangeWithDefault

/** Attempts at one run, the first included. */
export const RETRY_ATTEMPTS = { min: 1, max: 100 } as const satisfies Range

/** The backoff before the second attempt, and the cap of every backoff. */
export const RETRY_SECONDS = { min: 1, max: 86_400 } as const satisfies Range

/**
 * The default of a schedule that calls HTTP. The first backoffs outlast a restart of the called service, all nine together
 * (2 h 15 min) an outage.
 */
export const HTTP_RETRY = { maxAttempts: 10, baseSeconds: 30, capSeconds: 2160 } as const

/** The timeout of one HTTP attempt. */
export const HTTP_TIMEOUT_SECONDS = { min: 1, max: 300, default: 30 } as const satisfies RangeWithDefault

/** As the URL is written, and again once it is percent-encoded. */
export const URL_MAX_LENGTH = 2048

export const HTTP_PAYLOAD_MAX_BYTES = 256 * 1024

/** Node's servers accept 16 kB of request line and headers, which must also hold the headers that Carillon adds. */
export const HTTP_HEADERS = { maxCount: 50, nameMaxLength: 128, valueMaxLength: 4096, totalMaxLength: 8192 } as const

export const IDEMPOTENCY_KEY_MAX_LENGTH = 255

/** ETags in one `If-Match`. */
export const IF_MATCH_MAX = 10

/** Of the name in a typed subject: `user:<name>`. */
export const SUBJECT_NAME_MAX_LENGTH = 200

export const GRANT_SCOPES = { min: 1, max: 50 } as const satisfies Range

export const GRANT_SCOPE_MAX_LENGTH = 300

export const BILLING_ACCOUNT_MAX_LENGTH = 200

/** How long before a grant expires its readers are warned. */
export const GRANT_WARNING_MS = 7 * 86_400_000

export const SECRET_VALUE_MAX_LENGTH = 8192

/** Of the name that a page of a list by names starts after. */
export const PAGE_POSITION_MAX_LENGTH = 300

/** What a tenant's own limits may be set to. */
export const TENANT_SCHEDULES = { min: 1, max: 1_000_000 } as const satisfies Range
export const TENANT_MINIMUM_SECONDS = { min: 1, max: 86_400 } as const satisfies Range
export const TENANT_REQUESTS_PER_MINUTE = { min: 1, max: 1_000_000_000 } as const satisfies Range
export const TENANT_HOSTS_MAX = 200
export const TENANT_HOST_MAX_LENGTH = 300
