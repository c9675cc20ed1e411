import { listOf, VariableGroup, type Environment, type Reading } from '../environment.ts'
import { describeUrl, isServiceUrl } from '../service-url.ts'
import { CLAIM_MAPPING_DEFAULT, type ClaimMapping } from './claimed-identity.ts'
import { JWT_ALGORITHMS, JWT_ALGORITHMS_DEFAULT, type JwtAlgorithm } from './jwt-algorithms.ts'

/** Whose tokens are taken, and what they say. */
export interface JwtSettings {
  readonly issuer: string
  readonly audience: string
  readonly jwksUrl: string
  readonly algorithms: readonly JwtAlgorithm[]
  readonly claims: ClaimMapping
}

const REQUIRED = ['CARILLON_JWT_ISSUER', 'CARILLON_JWT_AUDIENCE', 'CARILLON_JWT_JWKS_URL'] as const
const OPTIONAL = [
  'CARILLON_JWT_ALGORITHMS',
  'CARILLON_JWT_TENANT_CLAIM',
  'CARILLON_JWT_PROJECT_CLAIM',
  'CARILLON_JWT_SUBJECT_CLAIM',
  'CARILLON_JWT_ROLE_CLAIM',
  'CARILLON_JWT_ADMIN_VALUES',
  'CARILLON_JWT_MEMBER_VALUES',
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
  expected: `some of ${JWT_ALGORITHMS.join(', ')}, with commas between`,
  read: (text) => {
    const names = listOf(text) ?? []
    const known = names.flatMap((name) => JWT_ALGORITHMS.filter((algorithm) => algorithm === name))
    return names.length > 0 && known.length === names.length ? known : undefined
  },
}
const CLAIM: Reading<string> = {
  expected: 'the name of a claim, or a path of names with dots between',
  read: (text) => (text.split('.').every((name) => /^\S+$/.test(name)) ? text : undefined),
}
const VALUES: Reading<readonly string[]> = { expected: 'values with commas between', read: listOf }

/**
 * Null: no tokens are taken.
 * @throws ServiceError `settings_invalid`, naming the variables at fault
 */
export function readJwtSettings(env: Environment): JwtSettings | null {
  const variables = new VariableGroup(env, REQUIRED, OPTIONAL)
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
