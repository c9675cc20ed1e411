import { ROOMS } from './arrows.ts'
import type { Violation } from './violation.ts'
import { packageIdOf, type SourceFile, type Workspace } from './workspace.ts'

/** A room: a folder in a package's `src`. */
interface Room {
  readonly package: string
  readonly name: string
}

/** The arrows between the rooms of a package; see `ROOMS` for what counts as an import. */
export function checkRooms(workspace: Workspace): Violation[] {
  return workspace.files
    .values()
    .filter((file) => !file.isTest)
    .flatMap((file) => {
      const room = roomOf(file.path)
      if (room === undefined) return []
      const allowed = ROOMS[room.package]?.[room.name]
      return allowed ? checkFile(file, room, allowed, workspace) : [unplacedRoom(file, room)]
    })
    .toArray()
}

function checkFile(file: SourceFile, room: Room, allowed: readonly string[], { files }: Workspace): Violation[] {
  return file.imports.flatMap(({ target, line }) => {
    if (target === undefined) return []
    const reached = roomsBehind(target, room.package, files)
    return [...reached]
      .filter(([other]) => other !== room.name && !allowed.includes(other))
      .map(([other, path]) => ({
        rule: 'room-arrow',
        file: file.path,
        line,
        message: `${room.name} may not import ${other} (${path})`,
      }))
  })
}

/** The rooms that an import of `start` leads to, each with its first file. Follows imports through files of no room. */
export function roomsBehind(start: string, packageId: string, files: Workspace['files']): Map<string, string> {
  const found = new Map<string, string>()
  const seen = new Set([start])
  for (const path of seen) {
    const room = roomOf(path)
    if (room !== undefined) {
      if (room.package === packageId && !found.has(room.name)) found.set(room.name, path)
      continue
    }
    for (const { target } of files.get(path)?.imports ?? []) {
      if (target !== undefined && packageIdOf(target) === packageId) seen.add(target)
    }
  }
  return found
}

/** Undefined for a file of a package without rooms, and for a file directly in `src`. */
export function roomOf(path: string): Room | undefined {
  const [, packageId = '', name = ''] = /^(?:packages|modules)\/([^/]+)\/src\/([^/]+)\//.exec(path) ?? []
  return packageId in ROOMS ? { package: packageId, name } : undefined
}

function unplacedRoom(file: SourceFile, room: Room): Violation {
  return {
    rule: 'room-arrow',
    file: file.path,
    line: 1,
    message: `folder ${room.name} is not among the rooms of ${room.package}: add it to scripts/boundaries/arrows.ts`,
  }
}
