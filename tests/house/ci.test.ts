import { access, constants, readFile } from 'node:fs/promises'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { REPOSITORY } from './run-tool.ts'

const CI = join(REPOSITORY, '.ci/run')

function npmCommands(text: string): string[] {
  return text.split('\n').filter((line) => line.startsWith('npm '))
}

test("CI runs the commands of the README's section Test in their order, and no others", async () => {
  const readme = await readFile(join(REPOSITORY, 'README.md'), 'utf8')
  const section = /\n## Test\n[\s\S]*?```sh\n([\s\S]*?)```/.exec(readme)?.[1] ?? ''

  const commands = npmCommands(await readFile(CI, 'utf8'))

  expect(commands).toEqual(npmCommands(section))
  expect(commands).toEqual(['npm install', 'npm run check', 'npm test'])
})

test('the CI script is executable, and stops at the first command that fails', async () => {
  await access(CI, constants.X_OK)

  expect(await readFile(CI, 'utf8')).toMatch(/^set -euxo pipefail$/m)
})
