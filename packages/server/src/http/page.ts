import { z } from 'zod'

import { cursorOf, positionOf, type CursorKind } from './cursor.ts'

const LIMIT_DEFAULT = 50
/** What the core gives at once. */
const FETCH_MAX = 200

/** Lists in the order of their names, which say all there is to say of a place in them. */
export const byName = (list: string): CursorKind<string> => ({ list, position: z.string().min(1).max(300) })

/** Lists of which an item is known by its id. */
export const byId = (list: string): CursorKind<string> => ({ list, position: z.uuid() })

interface PageRequest {
  readonly cursor?: string | undefined
  readonly limit?: number | undefined
}

interface PageSource<Item, Position> {
  readonly kind: CursorKind<Position>
  readonly positionOf: (item: Item) => Position
  readonly fetch: (page: { readonly before?: Position; readonly limit: number }) => Promise<readonly Item[]>
}

/** One page. Whether another follows is known by asking for one item more than fits. */
export async function readPage<Item, Position>(
  { cursor, limit = LIMIT_DEFAULT }: PageRequest,
  { kind, positionOf: position, fetch }: PageSource<Item, Position>,
): Promise<{ items: readonly Item[]; nextCursor: string | null }> {
  const after = (before: Position | undefined) => (before === undefined ? {} : { before })
  const before = cursor === undefined ? undefined : positionOf(kind, cursor)
  const found = await fetch({ ...after(before), limit: Math.min(limit + 1, FETCH_MAX) })
  const items = found.slice(0, limit)
  const last = items.at(-1)
  if (last === undefined || found.length < limit) return { items, nextCursor: null }
  const isMore =
    found.length > limit || (limit === FETCH_MAX && (await fetch({ before: position(last), limit: 1 })).length > 0)
  return { items, nextCursor: isMore ? cursorOf(kind, position(last)) : null }
}
