const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** Whether Postgres takes it for an id: anything else is answered without asking it. */
export function isUuid(value: unknown): value is string {
  return typeof value === 'string' && UUID.test(value)
}
