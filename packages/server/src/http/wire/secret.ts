import type { Secret } from '@carillon/api'
import type { SecretRecord } from '@carillon/core'

import { toInstant } from './instant.ts'

/** Field by field: whatever else a record may come to hold is not told. */
export function toSecret({ name, version, createdBy, createdAt, updatedBy, updatedAt }: SecretRecord): Secret {
  return { name, version, createdBy, createdAt: toInstant(createdAt), updatedBy, updatedAt: toInstant(updatedAt) }
}
