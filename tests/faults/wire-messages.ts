/** One message of the Postgres wire protocol. */
export interface WireMessage {
  /** The type byte as a letter. A message that opens a connection has no type byte, so it gets a name here. */
  readonly type: string
  /** The whole message, including its header. */
  readonly bytes: Buffer
}

const CANCEL_REQUEST = 80_877_102
const SSL_REQUEST = 80_877_103
const GSS_REQUEST = 80_877_104
/** One byte of type and four bytes of length. */
const HEADER_BYTES = 5
const LENGTH_BYTES = 4

/** Splits a stream of bytes into messages. A message may arrive in several chunks, and a chunk may contain several messages. */
export class MessageReader {
  #rest: Buffer = Buffer.alloc(0)
  /** Clients open with a packet that has no type byte; servers never send one. */
  #isOpening: boolean

  constructor(sender: 'client' | 'server') {
    this.#isOpening = sender === 'client'
  }

  push(chunk: Buffer): WireMessage[] {
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    const messages: WireMessage[] = []
    for (let message = this.#take(); message !== undefined; message = this.#take()) messages.push(message)
    return messages
  }

  #take(): WireMessage | undefined {
    const lengthAt = this.#isOpening ? 0 : 1
    if (this.#rest.length < lengthAt + LENGTH_BYTES) return undefined
    const size = lengthAt + this.#rest.readUInt32BE(lengthAt)
    if (this.#rest.length < size) return undefined
    const bytes = this.#rest.subarray(0, size)
    this.#rest = this.#rest.subarray(size)
    if (!this.#isOpening) return { type: String.fromCharCode(bytes[0] ?? 0), bytes }
    const type = openingType(bytes)
    // A client that is refused encryption sends its startup packet next.
    this.#isOpening = type === 'encryption'
    return { type, bytes }
  }
}

function openingType(bytes: Buffer): 'startup' | 'encryption' | 'cancel' {
  const code = bytes.readUInt32BE(LENGTH_BYTES)
  if (code === SSL_REQUEST || code === GSS_REQUEST) return 'encryption'
  return code === CANCEL_REQUEST ? 'cancel' : 'startup'
}

/** The zero-terminated texts at the start of a message's body. */
export function textsOf({ bytes }: WireMessage, count: number): string[] {
  const texts: string[] = []
  let from = HEADER_BYTES
  for (let index = 0; index < count; index += 1) {
    const end = bytes.indexOf(0, from)
    texts.push(bytes.toString('utf8', from, end))
    from = end + 1
  }
  return texts
}
