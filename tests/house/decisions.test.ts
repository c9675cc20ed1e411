import { globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'

import { expect, test } from 'vitest'

import { createTree } from './fixture-tree.ts'
import { REPOSITORY } from './run-tool.ts'

const HEADER = /^# (\d{4})\. \S.*\n\n- Date: (\d{4}-\d{2}-\d{2})\n- Status: (.+)\n/
const SUPERSEDED = /^(?:partly )?superseded by (\[\d{4}\]\(\d{4}-[a-z-]+\.md\)(?:, \[\d{4}\]\(\d{4}-[a-z-]+\.md\))*)$/

/** The faults in the header of each decision in a folder. */
function headerFaults(folder: string): string[] {
  const files = globSync('*.md', { cwd: folder }).toSorted()
  return files.flatMap((file) => {
    const [, number, date = '', status = ''] = HEADER.exec(readFileSync(join(folder, file), 'utf8')) ?? []
    if (number === undefined) return [`${file}: expected "# NNNN. Title", then "- Date:" and "- Status:" lines`]
    const faults: string[] = []
    if (!file.startsWith(`${number}-`)) faults.push(`${file}: expected the file's number, got ${number}`)
    if (Number.isNaN(Date.parse(date))) faults.push(`${file}: expected a date, got ${date}`)
    if (status === 'accepted') return faults
    const [, links] = SUPERSEDED.exec(status) ?? []
    if (links === undefined) return [...faults, `${file}: expected accepted or (partly) superseded, got ${status}`]
    const successors = [...links.matchAll(/\((\S+?)\)/g)].map(([, link = '']) => link)
    const bad = successors.filter((link) => !files.includes(link) || link <= basename(file))
    return [...faults, ...bad.map((link) => `${file}: expected a later decision that exists, got ${link}`)]
  })
}

test('every decision has a date and a status, and a superseded one names its successor', () => {
  expect(headerFaults(join(REPOSITORY, 'docs/decisions'))).toEqual([])
})

test.each([
  ['no header', '# 0001. Tools\n\n## Problem\n', 'expected "# NNNN. Title", then "- Date:" and "- Status:" lines'],
  [
    'another number',
    '# 0007. Tools\n\n- Date: 2026-11-15\n- Status: accepted\n',
    "expected the file's number, got 0007",
  ],
  ['no such date', '# 0001. Tools\n\n- Date: 2026-13-15\n- Status: accepted\n', 'expected a date, got 2026-13-15'],
  [
    'another status',
    '# 0001. Tools\n\n- Date: 2026-11-15\n- Status: old\n',
    'expected accepted or (partly) superseded, got old',
  ],
  [
    'no successor',
    '# 0001. Tools\n\n- Date: 2026-11-15\n- Status: superseded\n',
    'expected accepted or (partly) superseded, got superseded',
  ],
  [
    'a successor that does not exist',
    '# 0001. Tools\n\n- Date: 2026-11-15\n- Status: partly superseded by [0009](0009-gone.md)\n',
    'expected a later decision that exists, got 0009-gone.md',
  ],
])('a decision with %s is reported', async (_name, text, fault) => {
  await using tree = await createTree({ '0001-tools.md': text })

  expect(headerFaults(tree.root)).toEqual([`0001-tools.md: ${fault}`])
})

test('a decision that is superseded by an earlier one is reported', async () => {
  await using tree = await createTree({
    '0001-tools.md': '# 0001. Tools\n\n- Date: 2026-11-15\n- Status: accepted\n',
    '0002-more.md': '# 0002. More\n\n- Date: 2026-11-15\n- Status: superseded by [0001](0001-tools.md)\n',
  })

  expect(headerFaults(tree.root)).toEqual(['0002-more.md: expected a later decision that exists, got 0001-tools.md'])
})
