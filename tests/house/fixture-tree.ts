import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

/** A folder of files that is removed when the test disposes it. */
export interface FixtureTree extends AsyncDisposable {
  readonly root: string
}

/** Writes `files` (path to content) into a fresh temporary folder. */
export async function createTree(files: Readonly<Record<string, string>>): Promise<FixtureTree> {
  const root = await mkdtemp(join(tmpdir(), 'carillon-house-'))
  for (const [path, content] of Object.entries(files)) {
    const file = join(root, path)
    await mkdir(dirname(file), { recursive: true })
    await writeFile(file, content)
  }
  return { root, [Symbol.asyncDispose]: () => rm(root, { recursive: true, force: true }) }
}
