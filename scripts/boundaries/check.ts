import { checkClock } from './clock-rule.ts'
import { checkCycles } from './cycle-rule.ts'
import { checkFileNames } from './file-name-rule.ts'
import { checkImports } from './import-rules.ts'
import { checkOutbound } from './outbound-rule.ts'
import { checkRooms } from './room-rule.ts'
import { checkSmallFiles } from './small-file-rule.ts'
import { checkSql } from './sql-rule.ts'
import { checkStopwatches } from './stopwatch-rule.ts'
import { checkStoreExports, checkStores } from './store-rule.ts'
import { checkUnusedArrows } from './unused-arrow-rule.ts'
import type { Violation } from './violation.ts'
import { readWorkspace, type Workspace } from './workspace.ts'

const RULES = [
  checkSyntax,
  checkFileNames,
  checkSmallFiles,
  checkImports,
  checkRooms,
  checkUnusedArrows,
  checkStores,
  checkStoreExports,
  checkCycles,
  checkSql,
  checkClock,
  checkOutbound,
  checkStopwatches,
]

/** Everything in the repository under `root` that breaks a boundary. */
export function checkBoundaries(root: string): Violation[] {
  const workspace = readWorkspace(root)
  return RULES.flatMap((rule) => rule(workspace))
}

/** A file that does not parse has no imports to look at: without this rule it would pass all the others. */
function checkSyntax({ files }: Workspace): Violation[] {
  return files
    .values()
    .flatMap(({ path, syntaxErrors }) =>
      syntaxErrors.map((message) => ({ rule: 'syntax', file: path, line: 1, message })),
    )
    .toArray()
}
