import { spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { onTestFinished } from 'vitest'

export const isRoot = process.geteuid?.() === 0
/** True if the tests run as root and other users can reach this checkout, so root can run Node as another user. */
export const canBecomeOthers =
  isRoot && spawnSync(process.execPath, ['--version'], { uid: 1, gid: 1, cwd: '/' }).status === 0

/** A folder for one test. Others may enter it, because Postgres runs as another user if root starts it. */
export function createFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'carillon-postgres-'))
  chmodSync(folder, 0o711)
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}
