/** Which secret is meant. A name is looked for within one project and nowhere else (I9). */
export interface SecretName {
  readonly tenantId: string
  readonly projectId: string
  readonly name: string
}

/**
 * Where targets find the secrets that schedules refer to by name (I8). The built-in one is `BuiltInSecretStore`; another may ask a
 * vault. What it gives is used for one attempt, never kept, logged or put into an outcome.
 */
export interface SecretStore {
  /**
   * The secret itself; undefined if there is none of that name.
   * @throws if the store cannot be asked: the attempt then fails, to be tried again
   */
  resolve(secret: SecretName): Promise<string | undefined>
}
