import { foundText } from '@carillon/api'
import { z } from 'zod'

import { invalidInput } from './problems/problem-error.ts'

/** A list that is read in pages: what its cursors are called, and what they say of the last item of a page. */
export interface CursorKind<Position> {
  readonly list: string
  readonly position: z.ZodType<Position>
}

const VERSION = 1

/** Opaque to whoever gets it, and good for no other list. */
export function cursorOf<Position>({ list }: CursorKind<Position>, position: Position): string {
  return Buffer.from(JSON.stringify([VERSION, list, position])).toString('base64url')
}

/** @throws ProblemError for what is no cursor of this list */
export function positionOf<Position>(kind: CursorKind<Position>, cursor: string): Position {
  const content = z.tuple([z.literal(VERSION), z.literal(kind.list), kind.position]).safeParse(decode(cursor))
  if (content.success) return content.data[2]
  const expected = 'expected the nextCursor of the page before, of this very list'
  throw invalidInput([{ field: 'query.cursor', message: `${expected}, got ${foundText(cursor)}: begin without one` }])
}

function decode(cursor: string): unknown {
  try {
    return JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8'))
  } catch {
    return undefined
  }
}
