import { join } from 'node:path'

import { createOpenApi, PROBLEM_CODES, PROBLEM_TYPES } from '@carillon/api'
import { expect, test } from 'vitest'

import manifest from '../../package.json' with { type: 'json' }
import { renderApiPage } from '../../scripts/api-page.ts'
import { REPOSITORY } from './run-tool.ts'

// `npm run docs:api` runs this file with `--update`, which writes what it otherwise compares.
test('docs/api.md is what the operations say; if not, run `npm run docs:api` and review the difference', async () => {
  const document = createOpenApi({ version: manifest.version, url: 'http://127.0.0.1:7400' })
  const problems = PROBLEM_CODES.map((code) => ({ code, ...PROBLEM_TYPES[code] }))
  // The document is typed as any JSON; that it has what the page reads is what this test shows.
  const page = renderApiPage(document as unknown as Parameters<typeof renderApiPage>[0], problems)

  await expect(page).toMatchFileSnapshot(join(REPOSITORY, 'docs/api.md'))
})
