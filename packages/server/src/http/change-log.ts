import type { Logger } from 'pino'

/** Changes for which core emits no typed event. For changes of schedules it does, and `logEvents` logs those. */
type Change =
  | 'grant.created'
  | 'grant.renewed'
  | 'grant.revoked'
  | 'secret.put'
  | 'secret.deleted'
  | 'member.put'
  | 'member.removed'
  | 'key.created'
  | 'key.revoked'
  | 'tenant.put'
  | 'project.purged'

/** The subject that made a change, and the scope of the change. */
interface Actor {
  readonly tenantId: string
  /** Null: the whole tenant. */
  readonly projectId: string | null
  readonly subject: string
}

/** Logs who changed what, once the change is made. The line holds ids and names, never the value of a secret or a key. */
export function logChange(
  logger: Logger,
  change: Change,
  { tenantId, projectId, subject }: Actor,
  details: Readonly<Record<string, unknown>>,
): void {
  logger.info({ event: change, tenantId, projectId, actor: subject, ...details }, change.replace('.', ' '))
}
