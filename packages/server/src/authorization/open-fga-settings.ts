import type { Role } from '@carillon/core'

import { VariableGroup, type Environment, type Reading } from '../environment.ts'
import { describeUrl, isServiceUrl } from '../service-url.ts'
import { OPEN_FGA_RELATIONS_DEFAULT } from './open-fga.ts'

/** Which OpenFGA server says who may do what. */
export interface OpenFgaSettings {
  readonly url: string
  readonly storeId: string
  readonly modelId: string | null
  readonly token: string | null
  readonly relations: Readonly<Record<Role, string>>
}

const REQUIRED = ['CARILLON_OPENFGA_URL', 'CARILLON_OPENFGA_STORE_ID'] as const
const OPTIONAL = [
  'CARILLON_OPENFGA_MODEL_ID',
  'CARILLON_OPENFGA_TOKEN',
  'CARILLON_OPENFGA_MEMBER_RELATION',
  'CARILLON_OPENFGA_ADMIN_RELATION',
] as const

const BASE_URL: Reading<string> = {
  expected: 'a URL of https or http, without credentials or a query',
  read: (text) => (isServiceUrl(text, 'anywhere') && !text.includes('?') ? text : undefined),
  describe: describeUrl,
}
/** As the API of OpenFGA defines it; so is a relation. */
const ULID: Reading<string> = {
  expected: 'an id of OpenFGA, 26 capital letters and digits',
  read: (text) => (/^[ABCDEFGHJKMNPQRSTVWXYZ0-9]{26}$/.test(text) ? text : undefined),
}
const RELATION: Reading<string> = {
  expected: 'the name of a relation, 1 to 50 characters without blanks, colons, # or @',
  read: (text) => (/^[^:#@\s]{1,50}$/.test(text) ? text : undefined),
}
const TOKEN: Reading<string> = {
  expected: 'visible ASCII characters',
  read: (text) => (/^[\x21-\x7e]+$/.test(text) ? text : undefined),
  describe: (text) => `${text.length} characters that are not`,
}

/**
 * Null: the built-in authorization.
 * @throws ServiceError `settings_invalid`, naming the variables at fault; it never tells the token
 */
export function readOpenFgaSettings(env: Environment): OpenFgaSettings | null {
  const variables = new VariableGroup(env, REQUIRED, OPTIONAL)
  if (!variables.isSet) return null
  const { member, admin } = OPEN_FGA_RELATIONS_DEFAULT
  return {
    url: variables.required('CARILLON_OPENFGA_URL', BASE_URL),
    storeId: variables.required('CARILLON_OPENFGA_STORE_ID', ULID),
    modelId: variables.optional('CARILLON_OPENFGA_MODEL_ID', ULID, null),
    token: variables.optional('CARILLON_OPENFGA_TOKEN', TOKEN, null),
    relations: {
      member: variables.optional('CARILLON_OPENFGA_MEMBER_RELATION', RELATION, member),
      admin: variables.optional('CARILLON_OPENFGA_ADMIN_RELATION', RELATION, admin),
    },
  }
}
