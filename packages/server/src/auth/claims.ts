import { isNameableSubject, NAME_PATTERN, type Role } from '@carillon/api'

import type { Identity } from './identity.ts'

type Claims = Readonly<Record<string, unknown>>

/** Names the claims of a token that hold the identity. A name may be a path with dots, which leads into nested claims. */
export interface ClaimMapping {
  readonly tenantClaim: string
  readonly projectClaim: string
  readonly subjectClaim: string
  readonly roleClaim: string
  /** Values of the role claim that give the role admin, even if the claim also holds one of `memberValues`. */
  readonly adminValues: readonly string[]
  readonly memberValues: readonly string[]
}

export const CLAIM_MAPPING_DEFAULT: ClaimMapping = {
  tenantClaim: 'tenant',
  projectClaim: 'project',
  subjectClaim: 'sub',
  roleClaim: 'role',
  adminValues: ['admin'],
  memberValues: ['member'],
}

export type ClaimedIdentity =
  | { readonly identity: Identity }
  /** The claim that is missing or has an invalid value. */
  | { readonly faultyClaim: string }

/** A subject that already has a type. `readSubject` puts `user:` before any other. */
const TYPED = /^(?:user|service):/
/** `system:` is Carillon itself, so no token may claim it. */
const RESERVED = /^system:/

/** Reads the identity from the claims of a verified token. No token acts as the installation. */
export function claimedIdentity(claims: Claims, mapping: ClaimMapping): ClaimedIdentity {
  const { tenantClaim, projectClaim, subjectClaim, roleClaim } = mapping
  const tenantId = readScopeName(claimAt(claims, tenantClaim))
  if (tenantId === undefined) return { faultyClaim: tenantClaim }
  const projectId = readScopeName(claimAt(claims, projectClaim))
  if (projectId === undefined) return { faultyClaim: projectClaim }
  const subject = readSubject(claimAt(claims, subjectClaim))
  if (subject === undefined) return { faultyClaim: subjectClaim }
  const role = readRole(claimAt(claims, roleClaim), mapping)
  if (role === undefined) return { faultyClaim: roleClaim }
  // All tokens of a subject in a project share this id, so that a fresh token does not reset a rate limit. No name of a tenant or
  // a project holds a slash, so two subjects never share an id.
  const keyId = `jwt:${tenantId}/${projectId}/${subject}`
  return { identity: { caller: { tenantId, projectId, subject }, role, keyId, isInstallation: false } }
}

/**
 * Returns the claim with exactly this name, such as `https://example.com/tenant`. If there is none, follows the dots of the
 * path, such as `realm_access.roles`. Reads own properties only, so nothing inherited from Object counts as a claim.
 */
function claimAt(claims: Claims, path: string): unknown {
  if (Object.hasOwn(claims, path)) return claims[path]
  let found: unknown = claims
  for (const name of path.split('.')) {
    if (!isClaims(found) || !Object.hasOwn(found, name)) return undefined
    found = found[name]
  }
  return found
}

function isClaims(value: unknown): value is Claims {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Returns the claim if it can be the name of a tenant or a project. */
function readScopeName(claim: unknown): string | undefined {
  return typeof claim === 'string' && NAME_PATTERN.test(claim) ? claim : undefined
}

function readSubject(claim: unknown): string | undefined {
  if (typeof claim !== 'string' || RESERVED.test(claim)) return undefined
  const subject = TYPED.test(claim) ? claim : `user:${claim}`
  return isNameableSubject(subject) ? subject : undefined
}

function readRole(claim: unknown, { adminValues, memberValues }: ClaimMapping): Role | undefined {
  const values: readonly unknown[] = Array.isArray(claim) ? claim : [claim]
  if (!values.every((value) => typeof value === 'string')) return undefined
  if (values.some((value) => adminValues.includes(value))) return 'admin'
  return values.some((value) => memberValues.includes(value)) ? 'member' : undefined
}
