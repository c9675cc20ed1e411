import type { ProblemCode } from '@carillon/api'
import type { ServiceErrorCode } from '@carillon/server'

import type { CliErrorCode } from './cli-error.ts'

/** Every exit code there is, and what it says. */
export const EXIT_CODES = {
  ok: { code: 0, meaning: 'done' },
  refused: { code: 1, meaning: 'refused, failed, or the service cannot be reached; the error says which' },
  usage: { code: 2, meaning: 'the command was not given as it has to be' },
  run_unsuccessful: { code: 3, meaning: 'the run that was waited for did not succeed' },
  timed_out: { code: 4, meaning: 'waiting took longer than --timeout' },
  found: { code: 5, meaning: '`doctor` or `audit` found something' },
  interrupted: { code: 130, meaning: 'interrupted' },
} as const satisfies Readonly<Record<string, { readonly code: number; readonly meaning: string }>>

export type Exit = keyof typeof EXIT_CODES

/** Everything an error can be called. */
export type ErrorCode = ProblemCode | ServiceErrorCode | CliErrorCode

/** How the command ends, by what went wrong. */
export const EXIT_OF_ERROR: Readonly<Record<ErrorCode, Exit>> = {
  usage: 'usage',
  not_confirmed: 'usage',
  key_missing: 'refused',
  unreachable: 'refused',
  name_ambiguous: 'refused',
  file_unreadable: 'refused',
  file_invalid: 'refused',
  output_unwritable: 'refused',
  unexpected: 'refused',
  timed_out: 'timed_out',
  interrupted: 'interrupted',

  invalid_input: 'refused',
  malformed_json: 'refused',
  unauthenticated: 'refused',
  forbidden: 'refused',
  route_not_found: 'refused',
  schedule_not_found: 'refused',
  run_not_found: 'refused',
  grant_not_found: 'refused',
  key_not_found: 'refused',
  secret_not_found: 'refused',
  tenant_not_found: 'refused',
  project_not_found: 'refused',
  method_not_allowed: 'refused',
  state_conflict: 'refused',
  overlap: 'refused',
  grant_invalid: 'refused',
  quota_exceeded: 'refused',
  idempotency_in_flight: 'refused',
  revision_conflict: 'refused',
  request_timeout: 'refused',
  body_too_large: 'refused',
  headers_too_large: 'refused',
  unsupported_media_type: 'refused',
  slot_not_found: 'refused',
  purge_refused: 'refused',
  idempotency_key_reused: 'refused',
  revision_required: 'refused',
  rate_limited: 'refused',
  internal: 'refused',
  unavailable: 'refused',
  secrets_unavailable: 'refused',

  settings_invalid: 'refused',
  database_required: 'refused',
  database_unreachable: 'refused',
  schema_outdated: 'refused',
  schema_too_new: 'refused',
  schema_changed: 'refused',
  workers_alive: 'refused',
  data_directory_missing: 'refused',
  data_directory_unusable: 'refused',
  data_directory_foreign: 'refused',
  data_directory_newer: 'refused',
  data_directory_outdated: 'refused',
  data_directory_in_use: 'refused',
  postgres_failed: 'refused',
  port_in_use: 'refused',
  address_unavailable: 'refused',
  unknown_target_kind: 'refused',
  stopped: 'interrupted',
}

/** The table, as `--help` shows it. */
export function exitCodeLines(): string[] {
  return Object.values(EXIT_CODES).map(({ code, meaning }) => `${String(code).padStart(5)}  ${meaning}`)
}
