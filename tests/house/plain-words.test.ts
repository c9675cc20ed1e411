import { expect, test } from 'vitest'

import { createTree } from './fixture-tree.ts'
import { findUnclearWords } from './plain-words.ts'
import { REPOSITORY } from './run-tool.ts'

const GUARANTEES = { 'docs/guarantees.md': '| I1  | ONE_ROW_OF_TRUTH |\n| I12 | FENCED |\n' }

// `PLAIN_WORDS=docs,bench npm test -- plain-words` looks at these folders only.
test('names are words of the field, ids are defined in this repository, and test titles name their actor', () => {
  const under = process.env['PLAIN_WORDS']?.split(',') ?? []

  expect(findUnclearWords(REPOSITORY, under)).toEqual([])
})

test.each([
  ['class RightsDesk {}', '"RightsDesk", say permission checker'],
  [`import './create-desk.ts'`, '"create-desk", say create batcher'],
  ['new SlotBook()', '"SlotBook", say cadence cache'],
  ['const knownInputs = 1', '"knownInputs", say cadence cache'],
  ['// looks for strays', '"stray", say commit in doubt, unknown run, or unexpected error'],
  ['takeCensus()', '"Census", say gauges'],
  ['GrantWarner', '"GrantWarner", say grant expiry warnings'],
  ['the keeper claims', '"keeper", say pipeline loop'],
  ['AgendaWatch', '"AgendaWatch", say due watch'],
  ['settler.settle(run)', '"settler", say settle queue'],
  ['LanePlace', '"LanePlace", say lane position'],
  ['withoutVainRetry(policy)', '"VainRetry", say drop pointless retry'],
  ['buried.length', '"buried", say removed workers, failures reset'],
  ['forgiven', '"forgiven", say removed workers, failures reset'],
  ['a breath of 10 ms', '"breath", say batch delay'],
  ['interface Told {}', '"Told", say emit, event'],
  ['isPlain(settlement)', '"isPlain", say needs no lock'],
  ['walledTransaction', '"walled", say scoped'],
  ['select carillon.wall_in(child)', '"wall_in", say enable row security, live schedules'],
  ['carillon.require_places()', '"require_places", say check quotas'],
  ['untilNobodyIsConnected(database)', '"untilNobody", say unknown, unused, disconnected'],
  [`test('a slot runs once (E-28)')`, '"E-28", say the rule itself'],
  ['X-7: the same body', '"X-7", say the rule itself'],
  ['// I13: no error ends a service', '"I13", say an invariant of docs/guarantees.md'],
])('the check reports %s', async (source, fault) => {
  await using tree = await createTree({ ...GUARANTEES, 'packages/core/src/a.ts': `// first line\n${source}\n` })

  expect(findUnclearWords(tree.root)).toEqual([`packages/core/src/a.ts:2: ${fault}`])
})

test.each([
  'a timekeeper, a firewalled host, a text that went astray',
  'isPlainObject(value), breadth, UTF-16, R-1/PT1H, 2026-11-18, settled, settle',
  'I1 and I12 hold',
])('the check accepts: %s', async (source) => {
  await using tree = await createTree({ ...GUARANTEES, 'docs/a.md': source })

  expect(findUnclearWords(tree.root)).toEqual([])
})

test('the check reports the name of a file', async () => {
  await using tree = await createTree({ ...GUARANTEES, 'tests/stray-check.ts': '' })

  expect(findUnclearWords(tree.root)).toEqual([
    `tests/stray-check.ts: the file's name: "stray", say commit in doubt, unknown run, or unexpected error`,
  ])
})

test.each([
  ['a title in quotes', `test('a key that nobody has', () => {})`, 1, 'nobody'],
  ['the title of a group', `describe('whoever asks', () => {})`, 1, 'whoever'],
  ['a title on the line below its call', `test(\n  'the caller is told', () => {})`, 2, 'is told'],
  ['a word in two lines of a template', 'test(`the caller is\n  told why`, () => {})', 1, 'is told'],
  ['two joined texts', `test('the caller is ' +\n  'told why', () => {})`, 1, 'is told'],
  ['a title after rows', `test.each([1, 2])(\n  '%i: they were told', () => {})`, 2, 'were told'],
  ['a title under a condition', `describe.runIf(isLinux)('Nobody listens', () => {})`, 1, 'Nobody'],
  ['a constant', `const TITLE = 'nobody listens'\ntest(TITLE, () => {})`, 2, 'nobody'],
])('the check reports a title without an actor: %s', async (_what, source, line, found) => {
  await using tree = await createTree({ ...GUARANTEES, 'packages/core/tests/a.test.ts': source })

  expect(findUnclearWords(tree.root)).toEqual([
    `packages/core/tests/a.test.ts:${line}: the title: "${found}", say which actor does what`,
  ])
})

test.each([
  ['the data of a test', `test('a key is refused', () => { send('nobody') })`],
  ['the rows of a test', `test.each(['nobody', 'whoever'])('the name %s is refused', () => {})`],
  ['a comment in a test', `// nobody is told\ntest('a key is refused', () => {})`],
  ['another call', `expect('nobody').toBe(name)`],
])('the check accepts these words in %s', async (_what, source) => {
  await using tree = await createTree({ ...GUARANTEES, 'packages/core/tests/a.test.ts': source })

  expect(findUnclearWords(tree.root)).toEqual([])
})

test('the check looks only at the folders it is given', async () => {
  await using tree = await createTree({ ...GUARANTEES, 'tests/a.ts': 'census', 'bench/a.ts': 'census' })

  expect(findUnclearWords(tree.root, ['bench'])).toEqual(['bench/a.ts:1: "census", say gauges'])
})

test('a released migration keeps its names, and the changelog may quote a name that is gone', async () => {
  await using tree = await createTree({
    ...GUARANTEES,
    'packages/core/src/db/migrations/0003_walls.up.sql': '-- E-26: census',
    'CHANGELOG.md': '- The service `census` is now `gauges`.\n- The census is gone.\n',
  })

  expect(findUnclearWords(tree.root)).toEqual(['CHANGELOG.md:2: "census", say gauges'])
})
