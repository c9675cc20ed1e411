import { STORE_READERS } from './arrows.ts'
import type { Violation } from './violation.ts'
import type { Workspace } from './workspace.ts'

const ROOM = /^packages\/core\/src\/([^/]+)\//
const STORE = /^packages\/core\/src\/([^/]+)\/store\//

/** The SQL of a room is its own: only the room itself imports its `store/`. Other rooms call the room. */
export function checkStores({ files }: Workspace): Violation[] {
  return files
    .values()
    .filter((file) => !file.isTest && file.path.startsWith('packages/core/src/'))
    .flatMap((file) => {
      const room = ROOM.exec(file.path)?.[1]
      return file.imports.flatMap(({ target, line }) => {
        const owner = target === undefined ? undefined : STORE.exec(target)?.[1]
        if (owner === undefined || owner === room || STORE_READERS.includes(room ?? '')) return []
        const message = `${room ?? 'the facade'} may not import the store of ${owner} (${target})`
        return [{ rule: 'room-store', file: file.path, line, message }]
      })
    })
    .toArray()
}
