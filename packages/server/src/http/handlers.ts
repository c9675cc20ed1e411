import type { OperationId } from '@carillon/api'

import type { HandlersOf } from './handler.ts'
import { auditHandlers } from './routes/audit.ts'
import { cadenceHandlers } from './routes/cadence.ts'
import { calendarHandlers } from './routes/calendar.ts'
import { eventHandlers } from './routes/events.ts'
import { grantHandlers } from './routes/grants.ts'
import { keyHandlers } from './routes/keys.ts'
import { memberHandlers } from './routes/members.ts'
import { projectHandlers } from './routes/projects.ts'
import { runHandlers } from './routes/runs.ts'
import { scheduleBatchHandlers } from './routes/schedule-batches.ts'
import { scheduleChangeHandlers } from './routes/schedule-changes.ts'
import { scheduleHandlers } from './routes/schedules.ts'
import { secretHandlers } from './routes/secrets.ts'
import { tenantHandlers } from './routes/tenants.ts'

/** Who answers each operation. One without a handler does not compile. */
export const handlers: HandlersOf<OperationId> = {
  ...scheduleHandlers,
  ...scheduleBatchHandlers,
  ...scheduleChangeHandlers,
  ...calendarHandlers,
  ...runHandlers,
  ...cadenceHandlers,
  ...eventHandlers,
  ...grantHandlers,
  ...secretHandlers,
  ...memberHandlers,
  ...keyHandlers,
  ...tenantHandlers,
  ...projectHandlers,
  ...auditHandlers,
}
