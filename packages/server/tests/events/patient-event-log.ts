import { EventLog, type Caller, type EventLogPage } from '@carillon/core'

/**
 * A eventLog whose first read lasts until there is something: what is committed shows when no older transaction is under way on
 * the whole server.
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
