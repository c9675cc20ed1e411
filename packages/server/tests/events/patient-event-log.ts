import { EventLog, type Caller, type EventLogPage } from '@carillon/core'

/**
 * An event log whose first read waits until there is an entry. Committed entries become visible once no older transaction is open on the
 * whole Postgres server.
 */
export class PatientEventLog extends EventLog {
  #hasFound = false

  override async read(caller: Caller, after: string, options?: { readonly limit?: number }): Promise<EventLogPage> {
    for (;;) {
      const page = await super.read(caller, after, options)
      this.#hasFound ||= page.entries.length > 0
      if (this.#hasFound) return page
    }
  }
}
