import { INSTALLATION_SUBJECT, type ApiKey, type Caller, type Role } from '@carillon/core'

/** Who asks, and what they may do. */
export interface Identity {
  readonly caller: Caller
  readonly role: Role
  /** What requests are counted by: the id of the key, `installation` for the installation's own, `jwt:…` for who has a token. */
  readonly keyId: string
  readonly isInstallation: boolean
}

export const INSTALLATION: Identity = {
  caller: { tenantId: 'default', projectId: 'default', subject: INSTALLATION_SUBJECT },
  role: 'admin',
  keyId: 'installation',
  isInstallation: true,
}

export function identityOf({ id, tenantId, projectId, subject, role }: ApiKey): Identity {
  return { caller: { tenantId, projectId, subject }, role, keyId: id, isInstallation: false }
}
