import type { DocumentedOperation } from '../contract/document.ts'
import type { WireRequest } from '../contract/wire-request.ts'
import type { World } from '../contract/world.ts'
import type { Theirs } from './theirs.ts'
import { readCursor } from './two-tenants.ts'

/** An answer, to be held against another. */
export interface Revealed {
  readonly status: number
  /** Why it was refused; null if it was not. */
  readonly code: string | null
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
  /** As it came, with the cursors in it made readable. */
  readonly whole: string
}

interface Question {
  readonly key: string
  readonly operation: DocumentedOperation
  readonly request: WireRequest
  /** What the request may have named: put in brackets, for an answer may repeat it. */
  readonly named?: Theirs
}

const UNSHARED_HEADERS = /^(date|x-request-id|ratelimit|content-length|keep-alive)/
/** What no two answers share, though nothing differs but when they were given. */
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
    // Which ids it had is told by `idsIn`.
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
      // A problem repeats no more than the beginning of what is long.
      .replaceAll(/[\w-]+(?=…)/g, (cut) => `<${values.find(([, value]) => value.startsWith(cut))?.[0] ?? cut}>`)
  )
}

function cursorsIn(text: string): string[] {
  return [...text.matchAll(/"nextCursor":"([^"]+)"/g)].map(([, cursor = '']) => readCursor(cursor))
}
