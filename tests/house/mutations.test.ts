import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { SUITES } from '../../scripts/mutations/suites.ts'
import { REPOSITORY } from './run-tool.ts'

const mutations = Object.entries(SUITES).flatMap(([folder, suite]) =>
  suite.map((mutation) => ({ folder, ...mutation })),
)

test('every mutation names a text that its file contains, and changes it', () => {
  const stale = mutations.filter(({ folder, file, from, to }) => {
    const path = join(REPOSITORY, folder, 'src', file)
    return !existsSync(path) || !readFileSync(path, 'utf8').includes(from) || from === to
  })

  expect(stale.map(({ folder, file, guard }) => `${folder}/src/${file}: ${guard}`)).toEqual([])
})

test('every mutation names test files that exist', () => {
  const missing = mutations.flatMap(({ folder, tests = [] }) =>
    tests.map((file) => join(REPOSITORY, folder, file)).filter((path) => !existsSync(path)),
  )

  expect(missing).toEqual([])
})

test('no two mutations of a package have the same name', () => {
  const names = mutations.map(({ folder, guard }) => `${folder}: ${guard}`)

  expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([])
})
