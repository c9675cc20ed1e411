import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

import { afterAll, expect, test } from 'vitest'

import { PROBLEM_CODES } from '../src/index.ts'

const README = new URL('../README.md', import.meta.url)
const SOURCE = new URL('../src/index.ts', import.meta.url)

const folder = await mkdtemp(join(tmpdir(), 'cadence-readme-'))
afterAll(() => rm(folder, { recursive: true }))

/** Makes every `expression // value` line report its actual value and the value that the README gives. */
function instrument(code: string): string {
  const withImport = code.replace("'@carillon/cadence'", JSON.stringify(SOURCE.href))
  const reporting = withImport.replace(
    /^(?!import|const|if|\/\/)(.+?) \/\/ (".*")$/gm,
    (_line, expression: string, said: string) => `answers.push([${expression}, ${said}])`,
  )
  return `export const answers: [unknown, unknown][] = []\n${reporting}`
}

test('the example in the README runs and gives the results in its comments', async () => {
  const markdown = await readFile(README, 'utf8')
  const code = /```ts\n([\s\S]*?)```/.exec(markdown)?.[1] ?? ''
  const file = join(folder, 'example.ts')
  await writeFile(file, instrument(code))

  const { answers } = (await import(pathToFileURL(file).href)) as { answers: [unknown, unknown][] }

  expect(answers.length).toBeGreaterThanOrEqual(2)
  for (const [given, said] of answers) expect(given).toBe(said)
})

test('the README lists exactly the problem codes that exist', async () => {
  const markdown = await readFile(README, 'utf8')
  const list = markdown.slice(markdown.indexOf(`\`${PROBLEM_CODES[0]}\``))
  const codes = [...list.matchAll(/`([a-z_]+)`/g)].map((match) => match[1])

  expect(new Set(codes)).toEqual(new Set(PROBLEM_CODES))
})
