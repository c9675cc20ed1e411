import stringWidth from 'string-width'
import { describe, expect, test } from 'vitest'

import { fieldLines, tableLines, type Column } from './table.ts'

interface Row {
  readonly name: string
  readonly id: string
}

const COLUMNS: readonly Column<Row>[] = [
  { title: 'NAME', of: ({ name }) => name, shrinksTo: 6, style: () => 'green' },
  { title: 'ID', of: ({ id }) => id },
]
const PLAIN = { width: null, hasColor: false }

describe('a table', () => {
  test('is aligned and has no borders and no trailing spaces', () => {
    const rows = [
      { name: 'a', id: '1' },
      { name: 'longer', id: '22' },
    ]

    expect(tableLines(PLAIN, COLUMNS, rows)).toEqual(['NAME    ID', 'a       1', 'longer  22'])
  })

  test.each([
    ['wide characters', '朝のダイジェスト'],
    ['an emoji of several characters', '👩‍🚀 launch'],
    ['a combining accent', 'cafe\u0301'],
  ])('is aligned by terminal columns, not by characters: %s', (_what, name) => {
    const [, first = '', second = ''] = tableLines(PLAIN, COLUMNS, [
      { name, id: 'X' },
      { name: 'plain', id: 'X' },
    ])

    expect(stringWidth(first)).toBe(stringWidth(second))
  })

  test('shrinks to the terminal without splitting a character', () => {
    const rows = [{ name: '朝のダイジェスト', id: '0123456789' }]

    const [, line = ''] = tableLines({ width: 21, hasColor: false }, COLUMNS, rows)

    expect(line).toBe('朝のダイ…  0123456789')
    expect(stringWidth(line)).toBe(21)
  })

  test('does not cut a column that may not shrink, even if the terminal is too narrow', () => {
    const [, line = ''] = tableLines({ width: 5, hasColor: false }, COLUMNS, [
      { name: 'longer name', id: '0123456789' },
    ])

    expect(line).toBe('longe…  0123456789')
  })

  test('is not cut if the output is not a terminal', () => {
    const name = 'x'.repeat(500)

    expect(tableLines(PLAIN, COLUMNS, [{ name, id: '1' }])[1]).toBe(`${name}  1`)
  })

  test('shows control and direction characters as escapes', () => {
    const [, line = ''] = tableLines(PLAIN, COLUMNS, [{ name: '\u001B[2Jgone\u202Etxt\n\tnext', id: '1' }])

    expect(line).toBe('\\u{1b}[2Jgone\\u{202e}txt next  1')
  })

  test('has colours only if the terminal supports them', () => {
    const rows = [{ name: 'a', id: '1' }]

    expect(tableLines(PLAIN, COLUMNS, rows).join('')).not.toContain('\u001B')
    expect(tableLines({ width: 80, hasColor: true }, COLUMNS, rows)[1]).toContain('\u001B[32m')
  })

  test('without rows is empty', () => {
    expect(tableLines(PLAIN, COLUMNS, [])).toEqual([])
  })
})

test('a list of fields is aligned, and fields without a value are omitted', () => {
  expect(
    fieldLines(PLAIN, [
      ['Name', 'x'],
      ['Grant', ''],
      ['Revision', '1'],
    ]),
  ).toEqual(['Name      x', 'Revision  1'])
})
