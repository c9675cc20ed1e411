import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'

const read = (path: string): string => readFileSync(join(import.meta.dirname, path), 'utf8')

test('the guide to operations of a module shows lines of a module that is served by tests', () => {
  const known = new Set(
    read('ticket-module.ts')
      .split('\n')
      .map((line) => line.trim()),
  )
  const blocks = [...read('../../../../docs/guides/module-operations.md').matchAll(/^```ts\n(.*?)^```/gms)]

  const lines = blocks.flatMap(([, block = '']) => block.split('\n')).map((line) => line.trim())

  expect(blocks).toHaveLength(6)
  expect(lines.filter((line) => line !== '' && !known.has(line))).toEqual([])
})
