/** Databases of one Postgres server, made and dropped by name. */
export interface Databases {
  /** A migrated database; its url. */
  createDatabase(name: string): Promise<string>
  /** A database with nothing in it; its url. */
  createEmptyDatabase(name: string): Promise<string>
  /** Ends its remaining connections and drops it. */
  dropDatabase(name: string): Promise<void>
}

interface DatabasesOptions {
  /** Connected to the server, but not to one of the databases that are created. */
  readonly admin: { query(text: string): Promise<unknown> }
  /** Of any database on the server. */
  readonly url: string
  /** What the names of the databases begin with on the server. @default '' */
  readonly prefix?: string
  /** Gives the database at a url Carillon's schema and this month's partitions. */
  readonly migrate: (url: string) => Promise<void>
}

const TEMPLATE = 'bench_template'

/** Does not import Carillon: `migrate` decides which version creates the schema. */
export function databasesOf({ admin, url, prefix = '', migrate }: DatabasesOptions): Databases {
  const urlOf = (name: string): string => {
    const other = new URL(url)
    other.pathname = `/${prefix}${name}`
    return other.href
  }
  // Migrated once and then copied, which is much faster than migrating each.
  const createTemplate = async (): Promise<void> => {
    await admin.query(`create database ${prefix}${TEMPLATE}`)
    await migrate(urlOf(TEMPLATE))
  }
  let template: Promise<void> | undefined
  return {
    async createDatabase(name) {
      template ??= createTemplate()
      await template
      await admin.query(`create database ${prefix}${name} template ${prefix}${TEMPLATE}`)
      await admin.query('checkpoint')
      return urlOf(name)
    },
    async createEmptyDatabase(name) {
      await admin.query(`create database ${prefix}${name}`)
      await admin.query('checkpoint')
      return urlOf(name)
    },
    async dropDatabase(name) {
      try {
        // Waits some seconds for connections that are closing: ending them by force would be recorded as failures.
        await admin.query(`drop database if exists ${prefix}${name}`)
      } catch {
        await admin.query(`drop database if exists ${prefix}${name} with (force)`)
      }
    },
  }
}
