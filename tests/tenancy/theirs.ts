/** Everything of another tenant that a request can name. `unknownLike` makes values of the same shape that do not exist. */
export interface Theirs {
  readonly tenant: string
  /** A project of that tenant with a name that no other tenant uses. */
  readonly theirProject: string
  readonly scheduleId: string
  readonly runId: string
  readonly grantId: string
  /** A grant that was created for one schedule. */
  readonly ownGrantId: string
  readonly keyId: string
  /** Of the module of the contract tests. */
  readonly ticketId: string
  readonly subject: string
  readonly secretName: string
  readonly slot: string
  /** A part of the name of its schedule. */
  readonly namePart: string
  /** The Idempotency-Key of a create. */
  readonly idempotencyKey: string
  /** The Idempotency-Key of a batch create. */
  readonly batchKey: string
  /** Valid cursors, each of one of its lists. */
  readonly schedulesCursor: string
  readonly runsCursor: string
  readonly historyCursor: string
  readonly grantsCursor: string
  readonly keysCursor: string
  readonly membersCursor: string
  readonly secretsCursor: string
}

/** The attacker's own values, which an attack may name. */
export interface Mine {
  readonly project: string
  readonly scheduleId: string
}
