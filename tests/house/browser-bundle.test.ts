import { join } from 'node:path'

import { expect, test } from 'vitest'

import { measureBrowserBundle } from '../../scripts/browser-bundle.ts'
import { createTree } from './fixture-tree.ts'

async function measure(files: Readonly<Record<string, string>>): ReturnType<typeof measureBrowserBundle> {
  await using tree = await createTree(files)
  return await measureBrowserBundle(join(tree.root, 'index.ts'))
}

test('a bundle without Node is measured with its dependencies', async () => {
  const size = await measure({
    'index.ts': `export * from 'ringer'`,
    'node_modules/ringer/package.json': '{ "name": "ringer", "type": "module", "main": "ringer.js" }',
    'node_modules/ringer/ringer.js': `export const ring = () => '${'ding '.repeat(1000)}'`,
  })

  expect(size.minifiedBytes).toBeGreaterThan(5000)
  expect(size.gzipBytes).toBeLessThan(size.minifiedBytes / 10)
})

test.each([
  ['a node: import', `import { readFileSync } from 'node:fs'\nexport const x = readFileSync`, 'node:fs'],
  ['a builtin without the prefix', `import path from 'path'\nexport const x = path`, 'path'],
  [
    'an import that tree shaking would drop',
    `import os from 'node:os'\nconst unused = () => os\nexport const x = 1`,
    'node:os',
  ],
  ['a dynamic import', `export const x = () => import('node:vm')`, 'node:vm'],
  ['a package that is not there', `import 'not-installed'`, 'not-installed'],
])('%s fails the bundle, and the error names the import and the importer', async (_name, source, specifier) => {
  await expect(measure({ 'index.ts': source })).rejects.toThrow(new RegExp(`${specifier}, imported by .*index\\.ts`))
})

test('a Node import inside a dependency fails the bundle', async () => {
  const bundled = measure({
    'index.ts': `export * from 'ringer'`,
    'node_modules/ringer/package.json': '{ "name": "ringer", "main": "ringer.cjs" }',
    'node_modules/ringer/ringer.cjs': `exports.ring = () => require('fs')`,
  })

  await expect(bundled).rejects.toThrow(/fs, imported by .*ringer\.cjs/)
})
