/** Everything of another tenant that a request can name. Of nobody at all, it is of the same shape. */
export interface Theirs {
  readonly tenant: string
  /** A project of theirs whose name nobody else uses. */
  readonly theirProject: string
  readonly scheduleId: string
  readonly runId: string
  readonly grantId: string
  /** Made for one schedule. */
  readonly ownGrantId: string
  readonly keyId: string
  readonly subject: string
  readonly secretName: string
  readonly slot: string
  /** Of the name of their schedule. */
  readonly namePart: string
  /** One that they made a schedule with. */
  readonly idempotencyKey: string
  /** One that they made many with. */
  readonly batchKey: string
  /** Genuine ones, each of one of their lists. */
  readonly schedulesCursor: string
  readonly runsCursor: string
  readonly grantsCursor: string
  readonly keysCursor: string
  readonly membersCursor: string
  readonly secretsCursor: string
}

/** What an attacker has and may name. */
export interface Mine {
  readonly project: string
  readonly scheduleId: string
}
