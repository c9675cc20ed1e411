type Claims = Readonly<Record<string, unknown>>

/**
 * The claim of this very name, such as `https://example.com/tenant`; if there is none, the one that the dots of the path lead
 * to, such as `realm_access.roles`. Only what the token itself says counts, nothing that every object inherits.
 */
export function claimAt(claims: Claims, path: string): unknown {
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
