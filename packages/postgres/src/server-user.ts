import { execFileSync } from 'node:child_process'
import { existsSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** The user that Postgres runs as; undefined for the user of this process. */
export type ServerUser = { readonly uid: number; readonly gid: number } | undefined

/** The id of `nobody` on almost every system. A process may run under any id, so the user need not exist. */
const NOBODY = 65_534

/**
 * Postgres does not run as root. If this process is root, Postgres runs as the owner of the data directory or of its nearest
 * existing parent, so a later start without `sudo` works. If that owner is root, Postgres runs as the user `nobody`. It also does if there
 * is no database yet and the owner has no name, as is common for a folder that is mounted into a container: initdb requires a
 * user with a name.
 */
export function chooseServerUser(dataDir: string): ServerUser {
  if (process.geteuid?.() !== 0) return undefined
  const { uid, gid } = nearestExisting(dataDir)
  const isUsable = uid !== 0 && (existsSync(join(dataDir, 'PG_VERSION')) || hasName(uid))
  return isUsable ? { uid, gid } : { uid: NOBODY, gid: NOBODY }
}

function hasName(uid: number): boolean {
  try {
    execFileSync('id', ['-un', String(uid)], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/** The nearest parent of `path` that the server's user may not enter; undefined if the user can reach `path`. */
export function findObstacle(path: string, user: ServerUser): string | undefined {
  if (!user) return undefined
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    const { mode, uid, gid } = statSync(folder)
    const shift = uid === user.uid ? 6 : gid === user.gid ? 3 : 0
    if (((mode >> shift) & 1) === 0) return folder
    if (folder === dirname(folder)) return undefined
  }
}

function nearestExisting(path: string): { uid: number; gid: number } {
  try {
    return statSync(path)
  } catch (error) {
    if (path === dirname(path)) throw error
    return nearestExisting(dirname(path))
  }
}
