import type { Socket } from 'node:net'

import type { FaultPlan, Moment } from './fault-plan.ts'
import type { SeededRandom } from './seeded-random.ts'
import { CONNECT, SentStatements } from './sent-statements.ts'
import { MessageReader, type WireMessage } from './wire-messages.ts'

interface WireSessionOptions {
  readonly client: Socket
  readonly server: Socket
  readonly plan: FaultPlan
  readonly random: SeededRandom
}

interface Unanswered {
  readonly label: string
  readonly moment: Moment | undefined
}

/** Some silences last until the client gives up. The client's own time limits are shorter than this. */
const LONG_SILENCE_MS = 60_000
const LONG_SILENCE_CHANCE = 0.15
/** The other silences end with a cut, as when a router drops a connection that it has forgotten. */
const SHORT_SILENCE_MS = { least: 3000, most: 8000 }
const NO_ENCRYPTION = Buffer.from('N')

/** One connection of a client to Postgres, message by message, with at most one fault. */
export class WireSession {
  readonly #options: WireSessionOptions
  readonly #fromClient = new MessageReader('client')
  readonly #fromServer = new MessageReader('server')
  readonly #statements = new SentStatements()
  readonly #unanswered: Unanswered[] = []
  /** The fault of this connection, from its choice to its end. */
  #fault: { readonly label: string; readonly moment: Moment } | undefined
  #isSilent = false
  #isAnswerLost = false

  constructor(options: WireSessionOptions) {
    this.#options = options
    const { client, server } = options
    client.on('data', (chunk) => this.#hearClient(chunk))
    server.on('data', (chunk) => this.#hearServer(chunk))
    // A broken connection also emits `close`, which is handled below.
    for (const socket of [client, server]) socket.on('error', ignore)
    client.on('end', () => client.destroy())
    client.on('close', () => this.#clientLeft())
    server.on('end', () => server.destroy())
    server.on('close', () => this.#isSilent || client.destroy())
  }

  destroy(): void {
    this.#options.client.destroy()
    this.#options.server.destroy()
  }

  #hearClient(chunk: Buffer): void {
    const { client, server } = this.#options
    for (const message of this.#fromClient.push(chunk)) {
      if (message.type === 'encryption') {
        client.write(NO_ENCRYPTION)
        continue
      }
      const sent = this.#statements.read(message)
      // After a statement with a fault nothing is forwarded, except the password while connecting.
      if (sent === undefined || (this.#fault !== undefined && !this.#isConnecting)) continue
      if (sent.label === null) server.write(sent.bytes)
      else this.#pass(sent.label, sent.bytes)
    }
  }

  #pass(label: string, bytes: Buffer): void {
    const { server, plan } = this.#options
    const moment = plan.choose(label)
    if (moment !== undefined) this.#fault = { label, moment }
    if (moment === 'before') {
      this.#cut('both')
    } else if (moment === 'during') {
      this.#unanswered.push({ label, moment })
      const side = this.#options.random.chance(0.5) ? 'both' : 'client'
      server.write(bytes, () => this.#cut(side))
    } else {
      this.#unanswered.push({ label, moment })
      server.write(bytes)
    }
  }

  #hearServer(chunk: Buffer): void {
    const forwarded: Buffer[] = []
    for (const message of this.#fromServer.push(chunk)) if (this.#isForClient(message)) forwarded.push(message.bytes)
    const { client } = this.#options
    const then = this.#isAnswerLost ? (): void => this.#cut('both') : ignore
    if (forwarded.length > 0 && !client.destroyed) client.write(Buffer.concat(forwarded), then)
    else then()
  }

  /** Decides whether a message reaches the client, and counts complete answers. Answers before the one with a fault do reach it. */
  #isForClient({ type }: WireMessage): boolean {
    if (this.#isSilent || this.#isAnswerLost) return false
    const isLast = type === 'Z'
    const owner = isLast ? this.#unanswered.shift() : this.#unanswered[0]
    if (owner?.moment === undefined) return true
    if (isLast && owner.moment === 'after') this.#isAnswerLost = true
    // The client was cut off, and Postgres could finish the statement.
    if (isLast && owner.moment === 'during') this.#options.server.destroy()
    if (isLast && owner.moment === 'silence') this.#goSilent(owner.label)
    // While connecting, client and server take turns. So only the last message is dropped.
    return owner.label === CONNECT && !isLast
  }

  get #isConnecting(): boolean {
    return this.#unanswered[0]?.label === CONNECT
  }

  /**
   * `client` closes only the client's side. Postgres gets no notice: it finishes the statement, and rolls back a transaction that is left
   * open.
   */
  #cut(side: 'both' | 'client'): void {
    const { client, server, plan, random } = this.#options
    if (this.#fault === undefined || client.destroyed) return
    plan.happened(this.#fault.label, this.#fault.moment)
    if (side === 'both') server.destroy()
    if (random.chance(0.5)) client.resetAndDestroy()
    else client.destroy()
  }

  #goSilent(label: string): void {
    const { client, plan, random } = this.#options
    this.#isSilent = true
    plan.happened(label, 'silence')
    const isLong = random.chance(LONG_SILENCE_CHANCE)
    const forMs = isLong ? LONG_SILENCE_MS : random.between(SHORT_SILENCE_MS.least, SHORT_SILENCE_MS.most)
    const timer = setTimeout(() => {
      plan.noteFault()
      client.destroy()
    }, forMs)
    client.once('close', () => clearTimeout(timer))
  }

  #clientLeft(): void {
    const { server, plan } = this.#options
    const fault = this.#fault
    if (fault !== undefined) plan.over(fault.label, fault.moment)
    // A half-open connection is not closed here. The server's own time limits end it.
    const isLeftAlone = fault?.moment === 'during' || this.#isSilent
    if (!isLeftAlone) server.destroy()
  }
}

function ignore(): void {
  // The owner of the socket handles its close.
}
