import { INSTALLATION_SUBJECT, type ApiKey, type Caller, type Role } from '@carillon/core'

/** An authenticated caller: who it is, in which project it acts, and its role there. */
export interface Identity {
  readonly caller: Caller
  readonly role: Role
  /** Rate limits count requests per `keyId`: the id of an API key, `installation`, or `jwt:<tenant>/<project>/<subject>`. */
  readonly keyId: string
  /** True for the admin key and for a signed-in browser, which may administer every tenant. */
  readonly isInstallation: boolean
}

/** The identity of the admin key and of a signed-in browser. */
export const INSTALLATION: Identity = {
  caller: { tenantId: 'default', projectId: 'default', subject: INSTALLATION_SUBJECT },
  role: 'admin',
  keyId: 'installation',
  isInstallation: true,
}

export function identityOfKey({ id, tenantId, projectId, subject, role }: ApiKey): Identity {
  return { caller: { tenantId, projectId, subject }, role, keyId: id, isInstallation: false }
}
