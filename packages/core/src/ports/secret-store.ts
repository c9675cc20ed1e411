/** Identifies a secret. A store looks for the name in this project and nowhere else (I9). */
export interface SecretName {
  readonly tenantId: string
  readonly projectId: string
  readonly name: string
}

/**
 * Where targets find the secrets that schedules refer to by name (I8). The built-in store is `BuiltInSecretStore`; another one may ask
 * a vault. A target uses a secret for one attempt, and never keeps it, logs it or puts it into an outcome.
 */
export interface SecretStore {
  /**
   * The secret itself; undefined if there is none of that name.
   * @throws if the store cannot be asked: the attempt then fails and is retried
   */
  resolve(secret: SecretName): Promise<string | undefined>
}
