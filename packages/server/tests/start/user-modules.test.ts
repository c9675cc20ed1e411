import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

import { expect, onTestFinished, test } from 'vitest'

import { readManifests } from '../../src/start/modules.ts'
import { readSettings } from '../../src/start/settings.ts'

const MANIFEST = (name: string): string =>
  `{ port: 1, name: '${name}', version: '1', kinds: ['${name}'], load: () => import('./nothing.js') }`

/** Writes files into a folder of the test, and returns it. */
function folderWith(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'carillon-modules-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
  return folder
}

async function namesIn(folder: string, entries: string): Promise<string[]> {
  const manifests = await readManifests(readSettings({ CARILLON_MODULES: entries }, { folder }))
  return manifests.map(({ name }) => name)
}

test('without CARILLON_MODULES there are the modules of Carillon itself', async () => {
  expect(await namesIn('/', '')).toEqual(['http', 'echo'])
})

test('a module is a file relative to the working directory, TypeScript too, or a package that is installed there', async () => {
  const folder = folderWith({
    'one.js': `export default ${MANIFEST('one')}`,
    'two/two.ts': `interface Unused { readonly x: number }\nexport const module: object = ${MANIFEST('two')}`,
    'node_modules/three/package.json': '{"name":"three","type":"module","exports":"./main.js"}',
    'node_modules/three/main.js': `export default ${MANIFEST('three')}`,
    'node_modules/@scope/four/package.json': '{"name":"@scope/four","type":"module","exports":"./main.js"}',
    'node_modules/@scope/four/main.js': `export const module = ${MANIFEST('four')}`,
    'package.json': '{"type":"module"}',
  })

  expect(await namesIn(folder, './one.js, ./two/two.ts')).toEqual(['http', 'echo', 'one', 'two'])
  expect(await namesIn(folder, `three,@scope/four,${join(folder, 'one.js')}`)).toEqual([
    'http',
    'echo',
    'three',
    'four',
    'one',
  ])
})

test.each<[what: string, entry: string, message: RegExp]>([
  [
    'is not there',
    './absent.js',
    /^CARILLON_MODULES: expected \.\/absent\.js to be a module of Carillon: .*, got an error when it was imported: .*absent\.js/,
  ],
  [
    'is no installed package',
    'absent',
    /^CARILLON_MODULES: expected absent to be a module of Carillon: .*Cannot find module 'absent'/,
  ],
  ['throws', './throws.js', /expected \.\/throws\.js .*, got an error when it was imported: no such graph store$/],
  [
    'exports something else',
    './other.js',
    /expected \.\/other\.js to be .* as the default export, or as the export `module`, got exports create$/,
  ],
  ['exports nothing', './nothing.js', /got exports of no name$/],
  ['has a name of core', './schedule.js', /^module schedule: name: expected a name that core does not use/],
  [
    'has the kind of another module',
    './http.js',
    /^module http: name: expected words that no other module has, got http of http$/,
  ],
])('a module that %s stops the start, and the message names it', async (_what, entry, message) => {
  const folder = folderWith({
    'package.json': '{"type":"module"}',
    'throws.js': `throw new Error('no such graph store')`,
    'other.js': 'export function create() {}',
    'nothing.js': 'globalThis.seen = true',
    'schedule.js': `export default ${MANIFEST('schedule')}`,
    'http.js': `export default ${MANIFEST('http')}`,
  })

  await expect(namesIn(folder, entry)).rejects.toMatchObject({
    code: 'module_refused',
    message: expect.stringMatching(message) as string,
  })
})
