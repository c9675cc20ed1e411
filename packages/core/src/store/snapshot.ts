import type { Db, Tx } from './database.ts'

/** Reads with several statements as of one instant: what one of them saw, the others see, too. */
export function readSnapshot<Result>(db: Db, read: (tx: Tx) => Promise<Result>): Promise<Result> {
  return db.transaction().setIsolationLevel('repeatable read').setAccessMode('read only').execute(read)
}
