import fc from 'fast-check'
import pg from 'pg'
import { expect, test } from 'vitest'

import { parseInstant } from './instant-parser.ts'

const parseByDriver = pg.types.getTypeParser(pg.types.builtins.TIMESTAMPTZ) as (text: string) => Date | number

test('parseInstant parses every instant of the years 100 to 9999 like the driver, with any number of decimals', () => {
  const instants = fc.date({
    min: new Date('0100-01-01T00:00:00Z'),
    max: new Date('9999-12-31T23:59:59Z'),
    noInvalidDate: true,
  })
  const decimals = fc.stringMatching(/^[0-9]{0,6}$/)
  fc.assert(
    fc.property(instants, decimals, (instant, digits) => {
      const seconds = instant.toISOString().slice(0, 19).replace('T', ' ')
      const text = `${seconds}${digits === '' ? '' : `.${digits}`}+00`
      expect(parseInstant(text), text).toBe(Number(parseByDriver(text)))
    }),
  )
})

test.each([
  '0044-03-15 00:00:00+00 BC',
  '0099-01-01 00:00:00+00',
  '12026-01-01 00:00:00+00',
  '2026-03-29 03:30:00+02',
  '2026-03-29 03:30:00.5+05:30',
  'infinity',
  '-infinity',
])('parseInstant leaves other formats to the driver: %s', (text) => {
  expect(parseInstant(text)).toBe(Number(parseByDriver(text)))
})
