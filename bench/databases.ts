/** Databases of one Postgres server, created and dropped by name. */
export interface Databases {
  /** Creates a migrated database. @returns its URL */
  createDatabase(name: string): Promise<string>
  /** Creates an empty database. @returns its URL */
  createEmptyDatabase(name: string): Promise<string>
  /** Ends its remaining connections and drops it. */
  dropDatabase(name: string): Promise<void>
}

interface DatabasesOptions {
  /** A connection to the server, but not to one of the created databases. */
  readonly admin: { query(text: string): Promise<unknown> }
  /** The URL of any database on the server. */
  readonly url: string
  /** The prefix of the databases' names on the server. @default '' */
  readonly prefix?: string
  /** Migrates the database at a URL, and creates this month's partitions. */
  readonly migrate: (url: string) => Promise<void>
}

const TEMPLATE = 'bench_template'

/** This file does not import Carillon: `migrate` decides which version creates the schema. */
export function databasesOf({ admin, url, prefix = '', migrate }: DatabasesOptions): Databases {
  const urlOf = (name: string): string => {
    const other = new URL(url)
    other.pathname = `/${prefix}${name}`
    return other.href
  }
  // The template is migrated once and then copied, which is much faster than migrating each database.
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
        // This waits some seconds for connections that are closing. Ending them by force would be recorded as failures.
        await admin.query(`drop database if exists ${prefix}${name}`)
      } catch {
        await admin.query(`drop database if exists ${prefix}${name} with (force)`)
      }
    },
  }
}
