import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

import { expect, test } from 'vitest'

import { REPOSITORY } from './run-tool.ts'

const pages = globSync(['*.md', 'docs/**/*.md', '{packages,modules}/*/*.md'], { cwd: REPOSITORY }).toSorted()

/** The anchor that GitHub gives a heading. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{Letter}\p{Number}\s_-]/gu, '')
    .replaceAll(' ', '-')
}

function anchorsOf(file: string): string[] {
  return [...readFileSync(file, 'utf8').matchAll(/^#+ (.+)$/gm)].map((match) => anchorOf(match[1] ?? ''))
}

/** The links of a page to a file or heading that does not exist. */
function brokenLinks(page: string): string[] {
  const file = join(REPOSITORY, page)
  const prose = readFileSync(file, 'utf8').replace(/^```[^]*?^```/gm, '')
  const links = [...prose.matchAll(/\]\(([^)\s]+)\)/g)].map((match) => match[1] ?? '')
  return links.filter((link) => {
    if (/^[a-z]+:/.test(link)) return false
    const [path = '', anchor] = link.split('#')
    const target = path === '' ? file : join(dirname(file), path)
    return !existsSync(target) || (anchor !== undefined && !anchorsOf(target).includes(anchor))
  })
}

test.each(pages)('every link to a file or heading of the repository works: %s', (page) => {
  expect(brokenLinks(page)).toEqual([])
})

test.each(pages)('every npm command in a page exists: %s', (page) => {
  const { scripts } = JSON.parse(readFileSync(join(REPOSITORY, 'package.json'), 'utf8')) as { scripts: object }
  const named = [...readFileSync(join(REPOSITORY, page), 'utf8').matchAll(/npm run ([\w:]+)/g)].map((match) => match[1])

  expect(named.filter((name) => name !== undefined && !(name in scripts))).toEqual([])
})
