import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { SUITES } from '../../scripts/mutations/suites.ts'

const PACKAGES = join(import.meta.dirname, '../../packages')
const mutations = Object.entries(SUITES).flatMap(([name, suite]) => suite.map((mutation) => ({ name, ...mutation })))

test('every mutation names a text that its file contains, and changes it', () => {
  const stale = mutations.filter(({ name, file, from, to }) => {
    const path = join(PACKAGES, name, 'src', file)
    return !existsSync(path) || !readFileSync(path, 'utf8').includes(from) || from === to
  })

  expect(stale.map(({ name, file, guard }) => `${name}/src/${file}: ${guard}`)).toEqual([])
})

test('every mutation names test files that exist', () => {
  const missing = mutations.flatMap(({ name, tests = [] }) =>
    tests.map((file) => join(PACKAGES, name, file)).filter((path) => !existsSync(path)),
  )

  expect(missing).toEqual([])
})

test('no two mutations of a package have the same name', () => {
  const names = mutations.map(({ name, guard }) => `${name}: ${guard}`)

  expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([])
})
