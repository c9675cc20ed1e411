import type {
  AuthorizationPort,
  Clock,
  FailureRecord,
  Feed,
  Grants,
  Keys,
  Members,
  Projects,
  Scheduler,
  Secrets,
  Tenants,
} from '@carillon/core'
import type { Meter } from '@opentelemetry/api'
import type { Logger } from 'pino'

import type { JwtVerifier } from '../jwt/jwt-verifier.ts'
import type { SignIn } from '../sign-in.ts'

/** What the HTTP app is made of. */
export interface AppDeps {
  readonly scheduler: Scheduler
  readonly keys: Keys
  readonly grants: Grants
  readonly members: Members
  readonly secrets: Secrets
  readonly tenants: Tenants
  readonly projects: Projects
  readonly feed: Feed
  /** Asked for every request, but for those of the installation itself. */
  readonly authorization: AuthorizationPort
  readonly clock: Clock
  /** Remembers whether the feed can be read for those who follow events. @default nobody asks */
  readonly feedFailures?: Pick<FailureRecord, 'failed' | 'succeeded'>
  /** Of the installation: admin of its own project, and may make keys for others. */
  readonly adminKey: string
  readonly version: string
  readonly logger: Logger
  /** What requests are counted by. @default the meter `carillon` of the process */
  readonly meter?: Meter
  /** In the text format of Prometheus. */
  readonly renderMetrics: () => Promise<string>
  /** What stands in the way of serving, one sentence each; empty if nothing. */
  readonly readiness: () => Promise<readonly string[]>
  /** What happened lately and does not stand in the way, one sentence each. @default nothing */
  readonly notices?: () => readonly string[]
  /** Lets a browser that has signed in act as the installation. */
  readonly signIn?: Pick<SignIn, 'accepts'>
  /** Tells whose a token is. Without it none is taken. */
  readonly jwt?: JwtVerifier
  readonly limits?: AppLimits
}

export interface AppLimits {
  /** Of one key, in this process, unless its tenant has a limit of its own. @default 60000 */
  readonly requestsPerMinute?: number
  /** @default 1 MiB, which is what the core takes, and 64 KiB */
  readonly bodyBytes?: number
  /** How many clients may follow events with one key, in this process. @default 50 */
  readonly streamsPerKey?: number
}

const LIMIT_DEFAULTS: Required<AppLimits> = {
  requestsPerMinute: 60_000,
  bodyBytes: 1_048_576 + 65_536,
  streamsPerKey: 50,
}

export function resolveLimits(limits: AppLimits = {}): Required<AppLimits> {
  return { ...LIMIT_DEFAULTS, ...limits }
}
