import { ApiError, type Schedule } from '@carillon/api'

import type { Cli } from '../cli.ts'
import { connect } from '../connection.ts'
import { patiently } from '../patiently.ts'

/** An answer that is given again is as old as the first: the schedule may have been deleted since. */
export async function findAgain(cli: Cli, id: string): Promise<Schedule | undefined> {
  try {
    return await patiently(cli, () => connect(cli).schedules.get(id))
  } catch (error) {
    if (error instanceof ApiError && error.code === 'schedule_not_found') return undefined
    throw error
  }
}
