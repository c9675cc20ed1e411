import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'

const GUIDE = readFileSync(join(import.meta.dirname, '../../../../docs/guides/modules.md'), 'utf8')
const PROGRAMS = ['tally-module.ts', 'tally-code.ts', 'tally-migrations/0001_counts.up.sql', 'embedded-modules.ts']

test('the guide to modules shows lines of programs that are type-checked and tested', () => {
  const lines = PROGRAMS.flatMap((file) => readFileSync(join(import.meta.dirname, file), 'utf8').split('\n'))
  const known = new Set(lines.map((line) => line.trim()))
  const blocks = [...GUIDE.matchAll(/^```(?:ts|sql)\n(.*?)^```/gms)].map(([, block = '']) => block.split('\n'))

  expect(blocks).toHaveLength(5)
  expect(blocks.flat().filter((line) => line !== '' && !known.has(line.trim()))).toEqual([])
})
