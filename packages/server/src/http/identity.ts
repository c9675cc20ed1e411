import type { ApiKey, Caller, Role } from '@carillon/core'

/** Who asks, and what they may do. */
export interface Identity {
  readonly caller: Caller
  readonly role: Role
  /** The id of the key; `installation` for the installation's own. */
  readonly keyId: string
  readonly isInstallation: boolean
}

export const INSTALLATION: Identity = {
  caller: { tenantId: 'default', projectId: 'default', subject: 'service:installation' },
  role: 'admin',
  keyId: 'installation',
  isInstallation: true,
}

export function identityOf({ id, tenantId, projectId, subject, role }: ApiKey): Identity {
  return { caller: { tenantId, projectId, subject }, role, keyId: id, isInstallation: false }
}
