import type { DocumentedOperation } from '../contract/document.ts'
import type { WireRequest } from '../contract/wire-request.ts'
import type { World } from '../contract/world.ts'
import type { Theirs } from './theirs.ts'
import { readCursor } from './two-tenants.ts'

/** An answer in a form that can be compared with another answer. */
export interface Revealed {
  readonly status: number
  /** The code of the refusal. Null if the request was not refused. */
  readonly code: string | null
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
  /** The unchanged answer, followed by its cursors in readable form. */
  readonly whole: string
}

interface Question {
  readonly key: string
  readonly operation: DocumentedOperation
  readonly request: WireRequest
  /** The values that the request names. They are replaced by placeholders, because an answer may repeat them. */
  readonly named?: Theirs
}

const UNSHARED_HEADERS = /^(date|x-request-id|ratelimit|content-length|keep-alive)/
/** Fields that differ between any two answers, because they depend on the time or are random. */
const UNSHARED_FIELDS = /"(instance|createdAt|updatedAt|addedAt|removedAt|requestedAt|key|prefix)":"[^"]*"/g
const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g

export async function tell(world: World, { key, operation, request, named }: Question): Promise<Revealed> {
  const response = await world.send(operation, request, { key })
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true
  const text = isStream ? 'a stream' : await response.text()
  if (isStream) await response.body?.cancel()
  const headers = Object.entries(Object.fromEntries(response.headers)).filter(([name]) => !UNSHARED_HEADERS.test(name))
  const shared = bracketed(text, named)
    .replaceAll(UNSHARED_FIELDS, '"$1"')
    .replaceAll(/DTSTAMP:\w+/g, 'DTSTAMP')
  return {
    status: response.status,
    code: /^\{.*"code":"(\w+)"/.exec(text)?.[1] ?? null,
    headers: Object.fromEntries(
      headers.map(([name, value]) => [name, bracketed(value, named).replaceAll(UUID, '<id>')]),
    ),
    // `idsIn` compares the ids.
    text: response.status === 201 ? shared.replaceAll(UUID, '<id>') : shared,
    whole: [bracketed(text, named), JSON.stringify(headers), ...cursorsIn(text)].join('\n'),
  }
}

export function idsIn(text: string): string[] {
  return text.match(UUID) ?? []
}

function bracketed(text: string, named: Theirs | undefined): string {
  const values = Object.entries<string>({ ...named })
    .filter(([name]) => name !== 'slot')
    .toSorted(([, a], [, b]) => b.length - a.length)
  return (
    values
      .reduce((told, [name, value]) => told.replaceAll(value, `<${name}>`), text)
      // A problem repeats only the beginning of a long value.
      .replaceAll(/[\w-]+(?=…)/g, (cut) => `<${values.find(([, value]) => value.startsWith(cut))?.[0] ?? cut}>`)
  )
}

function cursorsIn(text: string): string[] {
  return [...text.matchAll(/"nextCursor":"([^"]+)"/g)].map(([, cursor = '']) => readCursor(cursor))
}
