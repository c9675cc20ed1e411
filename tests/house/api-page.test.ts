import { join } from 'node:path'

import { createOpenApi, PROBLEM_CODES, PROBLEM_TYPES } from '@carillon/api'
import { expect, test } from 'vitest'

import manifest from '../../package.json' with { type: 'json' }
import { renderApiPage } from '../../scripts/api-page.ts'
import { REPOSITORY } from './run-tool.ts'

// `npm run docs:api` runs this test with `--update`, which writes the file instead of comparing it.
test('docs/api.md matches the operations; if not, run `npm run docs:api` and review the difference', async () => {
  const document = createOpenApi({ version: manifest.version, url: 'http://127.0.0.1:7400' })
  const problems = PROBLEM_CODES.map((code) => ({ code, ...PROBLEM_TYPES[code] }))
  // The document has the type of any JSON. This test shows that it has the parts that the page reads.
  const page = renderApiPage(document as unknown as Parameters<typeof renderApiPage>[0], problems)

  await expect(page).toMatchFileSnapshot(join(REPOSITORY, 'docs/api.md'))
})
