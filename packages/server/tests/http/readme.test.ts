import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

import { createHttpTarget } from '@carillon/http'
import { expect, test } from 'vitest'

import { ADMIN_KEY, createTestApp } from './test-app.ts'

const README = new URL('../../../api/README.md', import.meta.url)

test('the example in the README of the api package runs against a real server', async () => {
  await using world = await createTestApp({ targets: [createHttpTarget({ allowedHosts: ['digest.internal'] })] })
  const markdown = await readFile(README, 'utf8')
  const code = (/```ts\n([\s\S]*?)```/.exec(markdown)?.[1] ?? '')
    .replace("'@carillon/api'", JSON.stringify(import.meta.resolve('@carillon/api')))
    .replace("'http://127.0.0.1:7400'", JSON.stringify(await world.listen()))
    .replace("process.env.CARILLON_API_KEY ?? ''", JSON.stringify(ADMIN_KEY))
  const folder = await mkdtemp(join(tmpdir(), 'carillon-readme-'))
  const file = join(folder, 'example.ts')
  await writeFile(file, code)

  await import(pathToFileURL(file).href)

  await rm(folder, { recursive: true })
  expect((await world.admin.schedules.list()).items).toMatchObject([{ name: 'Digest', revision: 2 }])
})
