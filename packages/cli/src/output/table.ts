import stringWidth from 'string-width'

import { styled, type Style } from './style.ts'
import type { Screen } from './terminal.ts'
import { cutText, escapeControls, padText } from './text.ts'

export interface Column<Row> {
  readonly title: string
  readonly of: (row: Row) => string
  readonly style?: (row: Row) => Style | undefined
  /** The fewest terminal columns that this column may shrink to on a narrow terminal. @default it does not shrink */
  readonly shrinksTo?: number
}

const GAP = '  '

/** A table without borders: a header and one line per row; nothing without rows. */
export function tableLines<Row>(screen: Screen, columns: readonly Column<Row>[], rows: readonly Row[]): string[] {
  if (rows.length === 0) return []
  const cells = rows.map((row) => columns.map((column) => escapeControls(column.of(row))))
  const widths = columnWidths(columns, cells, screen.width)
  const header = columns.map(({ title }, index) => styled(screen, 'dim', fit(title, widths, index)))
  const body = rows.map((row, y) =>
    columns.map(({ style }, x) => styled(screen, style?.(row), fit(cells[y]?.[x] ?? '', widths, x))),
  )
  return [header, ...body].map((line) => line.join(GAP).trimEnd())
}

/** The last column is not padded. */
function fit(text: string, widths: readonly number[], index: number): string {
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
  const available = screenWidth - GAP.length * (columns.length - 1)
  return shrink(
    widths,
    columns.map(({ shrinksTo }) => shrinksTo),
    available,
  )
}

/** Takes one terminal column at a time from the widest table column that may shrink, until the line fits. */
function shrink(widths: readonly number[], minima: readonly (number | undefined)[], available: number): number[] {
  const result = [...widths]
  let excess = result.reduce((sum, width) => sum + width, 0) - available
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

/** One line per field of a single object. Fields without a value are left out. */
export function fieldLines(screen: Screen, fields: readonly (readonly [name: string, value: string])[]): string[] {
  const shown = fields.filter(([, value]) => value !== '')
  const width = Math.max(0, ...shown.map(([name]) => stringWidth(name)))
  return shown.map(([name, value]) => `${styled(screen, 'dim', padText(name, width))}${GAP}${escapeControls(value)}`)
}
