import { isNameableSubject, PLACE_NAME, type Role } from '@carillon/core'

import type { Identity } from '../http/identity.ts'
import { claimAt } from './claim-path.ts'

/** Which claims of a token say who asks. A path with dots leads into nested claims. */
export interface ClaimMapping {
  readonly tenantClaim: string
  readonly projectClaim: string
  readonly subjectClaim: string
  readonly roleClaim: string
  /** What the claim of the role says of an admin. Who is both is an admin. */
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
  /** The claim that is missing, or says something that cannot be. */
  | { readonly faultyClaim: string }

/** A subject that says its type already. `system:` acts without being asked, so nobody who asks is it. */
const TYPED = /^(?:user|service):/
const RESERVED = /^system:/

/** Who asks, by the claims of a token that was found genuine. Never the installation. */
export function claimedIdentity(claims: Readonly<Record<string, unknown>>, mapping: ClaimMapping): ClaimedIdentity {
  const { tenantClaim, projectClaim, subjectClaim, roleClaim } = mapping
  const tenantId = placeOf(claimAt(claims, tenantClaim))
  if (tenantId === undefined) return { faultyClaim: tenantClaim }
  const projectId = placeOf(claimAt(claims, projectClaim))
  if (projectId === undefined) return { faultyClaim: projectClaim }
  const subject = subjectOf(claimAt(claims, subjectClaim))
  if (subject === undefined) return { faultyClaim: subjectClaim }
  const role = roleOf(claimAt(claims, roleClaim), mapping)
  if (role === undefined) return { faultyClaim: roleClaim }
  // What is counted per key is counted per user of a project, whichever of their tokens they send. No place has a slash.
  const keyId = `jwt:${tenantId}/${projectId}/${subject}`
  return { identity: { caller: { tenantId, projectId, subject }, role, keyId, isInstallation: false } }
}

function placeOf(claim: unknown): string | undefined {
  return typeof claim === 'string' && PLACE_NAME.test(claim) ? claim : undefined
}

function subjectOf(claim: unknown): string | undefined {
  if (typeof claim !== 'string' || RESERVED.test(claim)) return undefined
  const subject = TYPED.test(claim) ? claim : `user:${claim}`
  return isNameableSubject(subject) ? subject : undefined
}

function roleOf(claim: unknown, { adminValues, memberValues }: ClaimMapping): Role | undefined {
  const values: readonly unknown[] = Array.isArray(claim) ? claim : [claim]
  if (!values.every((value) => typeof value === 'string')) return undefined
  if (values.some((value) => adminValues.includes(value))) return 'admin'
  return values.some((value) => memberValues.includes(value)) ? 'member' : undefined
}
