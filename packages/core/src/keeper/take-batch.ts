import type { Clock } from '../clock.ts'
import type { LaneFrom } from '../store/agenda.ts'
import type { Db } from '../store/database.ts'
import { transactSending } from '../store/sent-transaction.ts'
import { newTransactionId } from '../store/stray-runs.ts'
import { takeDue, type Take } from '../store/take.ts'

/**
 * TAKE, in a transaction that has its id before the statement is sent. Should the answer be lost, the search for what was taken
 * waits until no earlier transaction is left (see `Strays`). A statement that is committed by itself has no id while it waits for
 * its tables: the search would end, and it would take runs after that which nobody knows of.
 */
export async function takeBatch(
  { db, clock }: { readonly db: Db; readonly clock: Clock },
  p: { readonly lanes: readonly LaneFrom[]; readonly perLane: number; readonly workerId: string },
): Promise<Take> {
  const { result } = await transactSending(db, clock, {
    work: async (tx) => {
      await newTransactionId(tx)
      const taking = takeDue(tx, { ...p, now: clock.databaseNow() })
      // Behind it the commit is sent at once.
      return { result: { taking }, last: taking, notBefore: null }
    },
    look: () => Promise.resolve(),
  })
  return result.taking
}
