import { execFileSync } from 'node:child_process'
import { existsSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** The user that Postgres runs as; undefined: the one that we run as. */
export type ServerUser = { readonly uid: number; readonly gid: number } | undefined

/** No user of the system is made or needed: a process may run under any number. This one is `nobody` almost everywhere. */
const NOBODY = 65_534

/**
 * Postgres refuses to run as root. Started by root, it runs as the owner of the data directory, or of the nearest folder
 * above that exists, so that what `sudo` started once can be started without. As nobody if that is root again, or a
 * number without a name, as folders of the host have in a container: initdb insists on a name.
 */
export function chooseServerUser(dataDir: string): ServerUser {
  if (process.geteuid?.() !== 0) return undefined
  const { uid, gid } = nearestExisting(dataDir)
  const isFit = uid !== 0 && (existsSync(join(dataDir, 'PG_VERSION')) || hasName(uid))
  return isFit ? { uid, gid } : { uid: NOBODY, gid: NOBODY }
}

function hasName(uid: number): boolean {
  try {
    execFileSync('id', ['-un', String(uid)], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/** The folder above `path` that the server's user may not enter, nearest first; undefined if it can get there. */
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
