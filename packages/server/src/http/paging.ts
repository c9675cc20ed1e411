import { foundText, PAGE_POSITION_MAX_LENGTH, PAGE_SIZE } from '@carillon/api'
import { z } from 'zod'

import { invalidInput } from './problems.ts'

/** A list that is read in pages. A cursor holds the name of its list and the position of the last item of a page. */
export interface CursorKind<Position> {
  readonly list: string
  readonly position: z.ZodType<Position>
}

interface PageRequest {
  readonly cursor?: string | undefined
  readonly limit?: number | undefined
}

interface PageSource<Item, Position> {
  readonly kind: CursorKind<Position>
  readonly positionOf: (item: Item) => Position
  readonly fetch: (page: { readonly before?: Position; readonly limit: number }) => Promise<readonly Item[]>
}

const VERSION = 1

/** A list that is ordered by name: the position of an item is its name. */
export const byName = (list: string): CursorKind<string> => ({
  list,
  position: z.string().min(1).max(PAGE_POSITION_MAX_LENGTH),
})

/** A list in which the position of an item is its id. */
export const cursorById = (list: string): CursorKind<string> => ({ list, position: z.uuid() })

/** Reads one page. It fetches one item more than the page holds, to tell whether another page follows. */
export async function readPage<Item, Position>(
  { cursor, limit = PAGE_SIZE.default }: PageRequest,
  { kind, positionOf, fetch: fetchPage }: PageSource<Item, Position>,
): Promise<{ items: readonly Item[]; nextCursor: string | null }> {
  const before = cursor === undefined ? {} : { before: decodeCursor(kind, cursor) }
  const found = await fetchPage({ ...before, limit: Math.min(limit + 1, PAGE_SIZE.max) })
  const items = found.slice(0, limit)
  const last = items.at(-1)
  if (last === undefined || found.length < limit) return { items, nextCursor: null }
  const isMore =
    found.length > limit ||
    (limit === PAGE_SIZE.max && (await fetchPage({ before: positionOf(last), limit: 1 })).length > 0)
  return { items, nextCursor: isMore ? encodeCursor(kind, positionOf(last)) : null }
}

/** Writes a cursor, which is opaque to clients and valid for this list only. */
function encodeCursor<Position>({ list }: CursorKind<Position>, position: Position): string {
  return Buffer.from(JSON.stringify([VERSION, list, position])).toString('base64url')
}

/** @throws ProblemError for anything but a cursor of this list */
function decodeCursor<Position>(kind: CursorKind<Position>, cursor: string): Position {
  const content = z.tuple([z.literal(VERSION), z.literal(kind.list), kind.position]).safeParse(parseCursor(cursor))
  if (content.success) return content.data[2]
  const expected = 'expected the nextCursor of the previous page of this list'
  throw invalidInput([{ field: 'query.cursor', message: `${expected}, got ${foundText(cursor)}: start without one` }])
}

function parseCursor(cursor: string): unknown {
  try {
    return JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8'))
  } catch {
    return undefined
  }
}
