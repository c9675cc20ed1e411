import type { Logger } from 'pino'

/** What people change besides schedules, of which events tell. */
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

/** Whoever did it, in the place where it was done. */
interface Actor {
  readonly tenantId: string
  /** Null: in all of the tenant. */
  readonly projectId: string | null
  readonly subject: string
}

/**
 * One line for each change once it is made: who, where, what (E-75). Of ids and names only; never the value of a secret nor a
 * key.
 */
export function logChange(
  logger: Logger,
  change: Change,
  { tenantId, projectId, subject }: Actor,
  what: Readonly<Record<string, unknown>>,
): void {
  logger.info({ event: change, tenantId, projectId, actor: subject, ...what }, change.replace('.', ' '))
}
