import { isWriting, labelOf } from './statement-label.ts'
import { textsOf, type WireMessage } from './wire-messages.ts'

/** The bytes of one statement, or of another message of a client. */
interface Sent {
  readonly bytes: Buffer
  /** The label of the statement. Null for a message that the server does not answer with ReadyForQuery. */
  readonly label: string | null
}

/** The label of opening a connection, which can be cut like a statement. */
export const CONNECT = 'connect'

/**
 * Groups the messages of one client into statements. The server answers each group with one ReadyForQuery: a simple query is
 * one message, a prepared statement is Parse, Bind, Describe, Execute and Sync, of which Parse is sent only the first time.
 */
export class SentStatements {
  readonly #texts = new Map<string, string>()
  #group: Buffer[] = []
  #text: string | undefined
  /** The last statement of the open transaction, and whether it was a write. */
  #last: { readonly label: string; readonly isWrite: boolean } | undefined

  /** Undefined until the group is complete. */
  read(message: WireMessage): Sent | undefined {
    const { type, bytes } = message
    if (type === 'startup') return { bytes, label: CONNECT }
    if (type === 'Q') return { bytes, label: this.#labelled(textsOf(message, 1)[0] ?? '') }
    if (!'PBDECSH'.includes(type)) return { bytes, label: null }
    this.#group.push(bytes)
    this.#learn(message)
    if (type === 'H') return this.#close(null)
    if (type === 'S') return this.#close(this.#labelled(this.#text ?? 'sync'))
    return undefined
  }

  #learn(message: WireMessage): void {
    if (message.type === 'P') {
      const [name = '', text = ''] = textsOf(message, 2)
      this.#texts.set(name, text)
      this.#text = text
    }
    if (message.type === 'B') this.#text = this.#texts.get(textsOf(message, 2)[1] ?? '') ?? 'unknown statement'
  }

  #close(label: string | null): Sent {
    const bytes = Buffer.concat(this.#group)
    this.#group = []
    if (label !== null) this.#text = undefined
    return { bytes, label }
  }

  /** A commit is named after the last write of its transaction: losing the answers to two commits is two different faults. */
  #labelled(text: string): string {
    const label = labelOf(text)
    if (/^(?:begin|start transaction)\b/.test(label)) {
      this.#last = undefined
      return label
    }
    if (/^(?:commit|end)\b/.test(label)) {
      const last = this.#last
      this.#last = undefined
      return last === undefined ? 'commit' : `commit after ${last.label}`
    }
    if (/^rollback$/.test(label)) {
      this.#last = undefined
      return label
    }
    const isWrite = isWriting(text)
    if (isWrite || this.#last?.isWrite !== true) this.#last = { label, isWrite }
    return label
  }
}
