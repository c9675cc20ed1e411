import stringWidth from 'string-width'

import { cutText, padText } from './cut-text.ts'
import { harmlessText } from './harmless-text.ts'
import { styled, type Style } from './style.ts'
import type { Terminal } from './terminal.ts'

export interface Column<Row> {
  readonly title: string
  readonly of: (row: Row) => string
  readonly style?: (row: Row) => Style | undefined
  /** Gives way where the terminal is too narrow, down to so many columns. @default never */
  readonly shrinksTo?: number
}

type Screen = Pick<Terminal, 'width' | 'hasColor'>

const GAP = '  '

/** Lines of a table without borders: a header, then a row each; none without rows. Fits the terminal, if the columns can. */
export function tableLines<Row>(screen: Screen, columns: readonly Column<Row>[], rows: readonly Row[]): string[] {
  if (rows.length === 0) return []
  const cells = rows.map((row) => columns.map((column) => harmlessText(column.of(row))))
  const widths = columnWidths(columns, cells, screen.width)
  const header = columns.map(({ title }, index) => styled(screen, 'dim', fitted(title, widths, index)))
  const body = rows.map((row, y) =>
    columns.map(({ style }, x) => styled(screen, style?.(row), fitted(cells[y]?.[x] ?? '', widths, x))),
  )
  return [header, ...body].map((line) => line.join(GAP).trimEnd())
}

/** The last column is not filled up: nothing follows. */
function fitted(text: string, widths: readonly number[], index: number): string {
  const width = widths[index] ?? 0
  const cut = cutText(text, width)
  return index === widths.length - 1 ? cut : padText(cut, width)
}

function columnWidths<Row>(
  columns: readonly Column<Row>[],
  cells: readonly (readonly string[])[],
  screenWidth: number | null,
): number[] {
  const widths = columns.map(({ title }, x) =>
    cells.reduce((widest, row) => Math.max(widest, stringWidth(row[x] ?? '')), stringWidth(title)),
  )
  if (screenWidth === null) return widths
  const room = screenWidth - GAP.length * (columns.length - 1)
  return shrunk(
    widths,
    columns.map(({ shrinksTo }) => shrinksTo),
    room,
  )
}

/** Takes from the widest column that can still give, a column of text at a time, until all fit. */
function shrunk(widths: readonly number[], minima: readonly (number | undefined)[], room: number): number[] {
  const result = [...widths]
  let excess = result.reduce((sum, width) => sum + width, 0) - room
  for (; excess > 0; excess--) {
    let widest = -1
    for (const [index, width] of result.entries()) {
      const minimum = minima[index]
      if (minimum !== undefined && width > minimum && width > (result[widest] ?? 0)) widest = index
    }
    if (widest === -1) break
    result[widest] = (result[widest] ?? 0) - 1
  }
  return result
}

/** Names and values below each other, for a single thing. Empty values are left out. */
export function fieldLines(screen: Screen, fields: readonly (readonly [name: string, value: string])[]): string[] {
  const shown = fields.filter(([, value]) => value !== '')
  const width = Math.max(0, ...shown.map(([name]) => stringWidth(name)))
  return shown.map(([name, value]) => `${styled(screen, 'dim', padText(name, width))}${GAP}${harmlessText(value)}`)
}
