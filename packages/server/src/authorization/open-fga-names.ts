import type { AccessRequest } from '@carillon/core'

/**
 * Somebody as OpenFGA writes it: the subject itself, `user:alice`. Within the name, what means something to OpenFGA is
 * percent-encoded: nobody becomes everybody (`user:*`) or a group (`team:web#member`) by what they are called.
 */
export function openFgaUser(subject: string): string {
  const colon = subject.indexOf(':')
  return subject.slice(0, colon + 1) + subject.slice(colon + 1).replaceAll(/[%:#*]/g, encoded)
}

/**
 * A project as OpenFGA writes it: `project:<tenant>/<project>`. Neither part can hold a slash of its own, so no two projects
 * are called the same.
 */
export function openFgaProject({ tenantId, projectId }: Pick<AccessRequest, 'tenantId' | 'projectId'>): string {
  return `project:${encodeURIComponent(tenantId)}/${encodeURIComponent(projectId)}`
}

function encoded(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase()}`
}
