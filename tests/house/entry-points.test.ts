import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { REPOSITORY } from './run-tool.ts'

/** Where a value of an entry point is used: in code outside the package, or in a page that shows users what to import. */
const FILES = globSync(
  [
    '{packages,modules,tests,bench,examples}/**/*.ts',
    '{packages,modules}/*/README.md',
    'docs/guides/*.md',
    'README.md',
  ],
  {
    cwd: REPOSITORY,
    exclude: ['**/node_modules/**'],
  },
).map((path) => ({ path, text: readFileSync(join(REPOSITORY, path), 'utf8') }))

/** `modules/http/src/index.ts` to `http`. */
function folderOf(path: string): string | undefined {
  return path.split('/')[1]
}

test.each(['api', 'cadence', 'core', 'http', 'outbound', 'postgres', 'server'])(
  'every value that @carillon/%s exports is used by another package, or named in a page for users',
  async (name) => {
    const exported = Object.keys((await import(`@carillon/${name}`)) as object)
    const texts = FILES.filter(
      ({ path, text }) => path.endsWith('.md') || (folderOf(path) !== name && text.includes(`@carillon/${name}`)),
    ).map(({ text }) => text)

    const unused = exported.filter((value) => !texts.some((text) => new RegExp(String.raw`\b${value}\b`).test(text)))

    expect(exported).not.toEqual([])
    expect(unused).toEqual([])
  },
)
