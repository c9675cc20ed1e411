import { CLAIM_MAPPING_DEFAULT, type ClaimMapping } from '../auth/claims.ts'
import { JWT_ALGORITHMS, JWT_ALGORITHMS_DEFAULT, type JwtAlgorithm } from '../auth/jwt.ts'
import { OPEN_FGA_RELATIONS_DEFAULT, type OpenFgaOptions } from '../auth/open-fga.ts'
import { isVisibleAscii, listOf, VariableGroup, type Environment, type Reading } from './environment.ts'

/** Which tokens are accepted, and which claims hold the identity. */
export interface JwtSettings {
  readonly issuer: string
  readonly audience: string
  readonly jwksUrl: string
  readonly algorithms: readonly JwtAlgorithm[]
  readonly claims: ClaimMapping
}

/** The OpenFGA server that answers permission checks. */
export type OpenFgaSettings = Required<Omit<OpenFgaOptions, 'objectOf' | 'clock'>>

const JWT_REQUIRED = ['CARILLON_JWT_ISSUER', 'CARILLON_JWT_AUDIENCE', 'CARILLON_JWT_JWKS_URL'] as const
const JWT_OPTIONAL = [
  'CARILLON_JWT_ALGORITHMS',
  'CARILLON_JWT_TENANT_CLAIM',
  'CARILLON_JWT_PROJECT_CLAIM',
  'CARILLON_JWT_SUBJECT_CLAIM',
  'CARILLON_JWT_ROLE_CLAIM',
  'CARILLON_JWT_ADMIN_VALUES',
  'CARILLON_JWT_MEMBER_VALUES',
] as const
const OPEN_FGA_REQUIRED = ['CARILLON_OPENFGA_URL', 'CARILLON_OPENFGA_STORE_ID'] as const
const OPEN_FGA_OPTIONAL = [
  'CARILLON_OPENFGA_MODEL_ID',
  'CARILLON_OPENFGA_TOKEN',
  'CARILLON_OPENFGA_MEMBER_RELATION',
  'CARILLON_OPENFGA_ADMIN_RELATION',
] as const

const NAME: Reading<string> = {
  expected: 'a text without blanks',
  read: (text) => (/^\S+$/.test(text) ? text : undefined),
}
const JWKS_URL: Reading<string> = {
  expected: 'a URL of https, or of http on this machine, without credentials',
  read: (text) => (isServiceUrl(text, 'loopback') ? text : undefined),
  describe: describeUrl,
}
const ALGORITHMS: Reading<readonly JwtAlgorithm[]> = {
  expected: `a comma-separated list of ${JWT_ALGORITHMS.join(', ')}`,
  read: (text) => {
    const names = listOf(text) ?? []
    const known = names.flatMap((name) => JWT_ALGORITHMS.filter((algorithm) => algorithm === name))
    return names.length > 0 && known.length === names.length ? known : undefined
  },
}
const CLAIM: Reading<string> = {
  expected: 'the name of a claim, or a path of names joined by dots',
  read: (text) => (text.split('.').every((name) => /^\S+$/.test(name)) ? text : undefined),
}
const VALUES: Reading<readonly string[]> = { expected: 'comma-separated values', read: listOf }
const BASE_URL: Reading<string> = {
  expected: 'a URL of https or http, without credentials or a query',
  read: (text) => (isServiceUrl(text, 'anywhere') && !text.includes('?') ? text : undefined),
  describe: describeUrl,
}
/** OpenFGA's API defines the pattern of its ids here, and that of relations below. */
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
  read: (text) => (isVisibleAscii(text) ? text : undefined),
  describe: () => 'a character that is not visible ASCII',
}

/**
 * Reads which JSON Web Tokens are accepted. Null if none of these variables is set: then no token is accepted.
 * @throws OperatorError `settings_invalid`, naming the variables at fault
 */
export function readJwtSettings(env: Environment): JwtSettings | null {
  const variables = new VariableGroup(env, JWT_REQUIRED, JWT_OPTIONAL)
  if (!variables.isSet) return null
  const { tenantClaim, projectClaim, subjectClaim, roleClaim, adminValues, memberValues } = CLAIM_MAPPING_DEFAULT
  return {
    issuer: variables.required('CARILLON_JWT_ISSUER', NAME),
    audience: variables.required('CARILLON_JWT_AUDIENCE', NAME),
    jwksUrl: variables.required('CARILLON_JWT_JWKS_URL', JWKS_URL),
    algorithms: variables.optional('CARILLON_JWT_ALGORITHMS', ALGORITHMS, JWT_ALGORITHMS_DEFAULT),
    claims: {
      tenantClaim: variables.optional('CARILLON_JWT_TENANT_CLAIM', CLAIM, tenantClaim),
      projectClaim: variables.optional('CARILLON_JWT_PROJECT_CLAIM', CLAIM, projectClaim),
      subjectClaim: variables.optional('CARILLON_JWT_SUBJECT_CLAIM', CLAIM, subjectClaim),
      roleClaim: variables.optional('CARILLON_JWT_ROLE_CLAIM', CLAIM, roleClaim),
      adminValues: variables.optional('CARILLON_JWT_ADMIN_VALUES', VALUES, adminValues),
      memberValues: variables.optional('CARILLON_JWT_MEMBER_VALUES', VALUES, memberValues),
    },
  }
}

/**
 * Reads how OpenFGA is reached. Null if none of these variables is set: then only the built-in permission checks run.
 * @throws OperatorError `settings_invalid`, naming the variables at fault; it never quotes the token
 */
export function readOpenFgaSettings(env: Environment): OpenFgaSettings | null {
  const variables = new VariableGroup(env, OPEN_FGA_REQUIRED, OPEN_FGA_OPTIONAL)
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

/**
 * True if a URL may lead to a server that decides about access. Over plain http, an attacker on the network could answer in the
 * place of that server.
 * @param plainHttp where plain http is allowed: on this machine only, or also on a network that the operator trusts
 */
function isServiceUrl(text: string, plainHttp: 'loopback' | 'anywhere'): boolean {
  const url = URL.parse(text)
  if (url === null || url.username !== '' || url.password !== '' || url.hash !== '') return false
  return url.protocol === 'https:' || (url.protocol === 'http:' && (plainHttp === 'anywhere' || isLoopback(url)))
}

/** Quotes a wrong URL, unless it holds credentials. */
function describeUrl(text: string): string {
  const url = URL.parse(text)
  if (url === null) return 'something that is no URL'
  return url.username === '' && url.password === '' ? JSON.stringify(text) : 'one with credentials'
}

/** The URL parser has already normalized every spelling of an address. */
function isLoopback({ hostname }: URL): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname)
}
