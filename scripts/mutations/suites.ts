import { CADENCE_MUTATIONS } from './cadence.ts'
import { CLI_MUTATIONS } from './cli.ts'
import { CORE_MUTATIONS } from './core.ts'
import type { Mutation } from './mutation.ts'
import { POSTGRES_MUTATIONS } from './postgres.ts'
import { SERVER_MUTATIONS } from './server.ts'
import { TARGETS_MUTATIONS } from './targets.ts'

/** The mutations of each package under `packages/`. */
export const SUITES: Readonly<Record<string, readonly Mutation[]>> = {
  cadence: CADENCE_MUTATIONS,
  core: CORE_MUTATIONS,
  targets: TARGETS_MUTATIONS,
  postgres: POSTGRES_MUTATIONS,
  server: SERVER_MUTATIONS,
  cli: CLI_MUTATIONS,
}
