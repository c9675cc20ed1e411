import { describe, expect, test } from 'vitest'

import { RecentTexts } from '../src/http/recent-texts.ts'

const KEPT = { count: 3, textMaxLength: 10 }

function withTexts(...texts: string[]): RecentTexts<number> {
  const recent = new RecentTexts<number>(KEPT)
  for (const [index, text] of texts.entries()) recent.set(text, index)
  return recent
}

describe('what was made of a text', () => {
  test('is remembered while so many others come', () => {
    const recent = withTexts('a', 'b', 'c')

    expect(['a', 'b', 'c'].map((text) => recent.get(text))).toEqual([0, 1, 2])
    expect(recent.get('d')).toBeUndefined()
  })

  test('is forgotten once twice as many came, so that memory is bounded', () => {
    const texts = Array.from({ length: 1000 }, (_, index) => `${index}`)
    const recent = withTexts(...texts)

    const held = texts.filter((text) => recent.get(text) !== undefined)
    expect(held.length).toBeLessThanOrEqual(6)
    expect(held).toEqual(expect.arrayContaining(['997', '998', '999']))
  })

  test('is kept on while it is asked for', () => {
    const recent = withTexts('a')
    for (let index = 0; index < 1000; index++) {
      recent.set(`${index}`, index)
      expect(recent.get('a')).toBe(0)
    }
  })

  test('is not held if the text is longer than it may be', () => {
    expect(withTexts('x'.repeat(10)).get('x'.repeat(10))).toBe(0)
    expect(withTexts('x'.repeat(11)).get('x'.repeat(11))).toBeUndefined()
  })
})
