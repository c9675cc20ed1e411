/** Who the installation itself is: admin of its own project, whoever else is. Nobody else may be given this name. */
export const INSTALLATION_SUBJECT = 'service:installation'

/** In whose name something is asked for. Everything is found and written within this tenant and project. */
export interface Caller {
  readonly tenantId: string
  readonly projectId: string
  /** Typed: `user:alice`, `service:billing` (E-29). Recorded with every change. */
  readonly subject: string
}
