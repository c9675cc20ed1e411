import { deleteEventLogEntries, listEventLogItems, readEventLogBounds } from '../../src/event-log/store/event-log.ts'
import type { Samples } from './describe.ts'
import { AT, DATE, LIMIT, SCOPE } from './sample-values.ts'

const POSITION = { xactId: '1', id: '1', ordinal: 1, at: AT }

export const samples: Samples = [
  (db) => readEventLogBounds(db),
  (db) => listEventLogItems(db, { ...SCOPE, after: POSITION, horizon: '1', ...LIMIT }),
  (db) => deleteEventLogEntries(db, { before: DATE, ...LIMIT }),
]
