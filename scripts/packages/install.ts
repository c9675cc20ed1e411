import { execFile } from 'node:child_process'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'

interface InstallOptions {
  readonly env: NodeJS.ProcessEnv
  /** Without the Node and the Postgres that Carillon brings. */
  readonly isBare?: boolean
}

/** Installs tarballs into an empty project, as a user would. */
export async function installTarballs(
  tarballs: string,
  folder: string,
  { env, isBare = false }: InstallOptions,
): Promise<void> {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'app', private: true, type: 'module' }))
  const files = readdirSync(tarballs).map((name) => join(tarballs, name))
  const args = [
    'install',
    '--prefer-offline',
    '--no-audit',
    '--no-fund',
    '--loglevel=error',
    ...(isBare ? ['--omit=optional'] : []),
  ]
  await promisify(execFile)('npm', [...args, ...files], { cwd: folder, env })
}
