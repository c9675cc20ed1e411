import { chmod, copyFile, mkdir } from 'node:fs/promises'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { createTree } from './fixture-tree.ts'
import { REPOSITORY, runTool } from './run-tool.ts'

async function runCi(readme: string): Promise<{ exitCode: number; lines: string[] }> {
  await using tree = await createTree({ 'README.md': readme })
  const script = join(tree.root, '.ci/run')
  await mkdir(join(tree.root, '.ci'))
  await copyFile(join(REPOSITORY, '.ci/run'), script)
  await chmod(script, 0o755)
  const { exitCode, stdout } = await runTool(tree.root, script)
  return { exitCode, lines: stdout.trimEnd().split('\n') }
}

function readmeWith(commands: string): string {
  return `# Bells\n\n\`\`\`sh\nexit 9\n\`\`\`\n\n## Test\n\nLike this:\n\n\`\`\`sh\n${commands}\n\`\`\`\n\n## Next\n\n\`\`\`sh\nexit 8\n\`\`\`\n`
}

test('CI runs every command of the README’s section Test, and no other', async () => {
  const { exitCode, lines } = await runCi(readmeWith('echo first\necho "3 passed, 0 failed"'))

  expect(exitCode).toBe(0)
  expect(lines).toContain('first')
  expect(lines.at(-1)).toBe('3 passed, 0 failed')
})

test('CI stops at the first command that fails, with its status', async () => {
  const { exitCode, lines } = await runCi(readmeWith('(exit 3)\necho later'))

  expect(exitCode).toBe(3)
  expect(lines).not.toContain('later')
})

test('the count of a failed run is still the last line', async () => {
  const { exitCode, lines } = await runCi(readmeWith('echo "2 passed, 1 failed"; echo noise; exit 1'))

  expect(exitCode).toBe(1)
  expect(lines.at(-1)).toBe('2 passed, 1 failed')
})

test('a README without test commands fails', async () => {
  const { exitCode } = await runCi('# Bells\n\n## Test\n\nNone yet.\n')

  expect(exitCode).toBe(1)
})
