import { CADENCE_MUTATIONS } from './cadence.ts'
import { CLI_MUTATIONS } from './cli.ts'
import { CORE_MUTATIONS } from './core.ts'
import { HTTP_MUTATIONS } from './http.ts'
import { MODULE_MUTATIONS } from './modules.ts'
import type { Mutation } from './mutation.ts'
import { OPERATION_MUTATIONS, TARGET_HOOK_MUTATIONS } from './operations.ts'
import { OUTBOUND_MUTATIONS } from './outbound.ts'
import { POSTGRES_MUTATIONS } from './postgres.ts'
import { SERVER_MUTATIONS } from './server.ts'

/** The mutations of each package, by its folder. */
export const SUITES: Readonly<Record<string, readonly Mutation[]>> = {
  'packages/cadence': CADENCE_MUTATIONS,
  'packages/core': [...CORE_MUTATIONS, ...MODULE_MUTATIONS, ...TARGET_HOOK_MUTATIONS],
  'packages/outbound': OUTBOUND_MUTATIONS,
  'modules/http': HTTP_MUTATIONS,
  'packages/postgres': POSTGRES_MUTATIONS,
  'packages/server': [...SERVER_MUTATIONS, ...OPERATION_MUTATIONS],
  'packages/cli': CLI_MUTATIONS,
}
