import { PACKAGE_RULES, ROOMS } from './arrows.ts'
import { roomOf, roomsBehind } from './room-rule.ts'
import type { Violation } from './violation.ts'
import type { Workspace } from './workspace.ts'

/**
 * An arrow that no file uses would allow a new import without a decision. Arrows from and to a package that does not exist yet are
 * exempt: they say what it will be allowed.
 */
export function checkUnusedArrows(workspace: Workspace): Violation[] {
  return [...unusedPackageArrows(workspace), ...unusedRoomArrows(workspace)].map((message) => ({
    rule: 'unused-arrow',
    file: 'scripts/boundaries/arrows.ts',
    line: 1,
    message: `${message}: remove the arrow`,
  }))
}

function unusedPackageArrows({ files, packages }: Workspace): string[] {
  const used = new Set(
    files.values().flatMap((file) =>
      file.imports.flatMap(({ target }) => {
        const owner = target === undefined ? undefined : files.get(target)?.package
        return owner === undefined ? [] : [`${file.package.id} ${owner.id}`]
      }),
    ),
  )
  return Object.entries(PACKAGE_RULES).flatMap(([from, rule]) =>
    rule.packages
      .filter((to) => packages.has(from) && packages.has(to) && !used.has(`${from} ${to}`))
      .map((to) => `no file of ${from} imports ${to}`),
  )
}

/** Tests do not count: the rule for rooms does not hold for them. */
function unusedRoomArrows({ files, packages }: Workspace): string[] {
  const used = new Set<string>()
  for (const file of files.values()) {
    const room = roomOf(file.path)
    if (room === undefined || file.isTest) continue
    for (const { target } of file.imports) {
      if (target === undefined) continue
      for (const to of roomsBehind(target, room.package, files).keys()) used.add(`${room.package} ${room.name} ${to}`)
    }
  }
  return Object.entries(ROOMS).flatMap(([name, rooms]) =>
    Object.entries(rooms).flatMap(([from, arrows]) =>
      arrows
        .filter((to) => packages.has(name) && !used.has(`${name} ${from} ${to}`))
        .map((to) => `no file of the room ${from} of ${name} imports ${to}`),
    ),
  )
}
