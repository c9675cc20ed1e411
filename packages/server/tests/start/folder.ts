import { spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { onTestFinished } from 'vitest'

const isRoot = process.geteuid?.() === 0
/** True if the tests run as root and can run Node as another user, which a checkout in a closed folder prevents. */
export const canBecomeOthers =
  isRoot && spawnSync(process.execPath, ['--version'], { uid: 1, gid: 1, cwd: '/' }).status === 0

/** A folder for one test. Other users may pass through it, because Postgres runs as another user if root starts it. */
export function createFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'carillon-server-'))
  chmodSync(folder, 0o711)
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}
