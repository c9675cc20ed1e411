import type { Command } from 'commander'

import type { Define } from '../define.ts'
import { addChanges } from './schedule-changes.ts'
import { addCreate } from './schedule-create.ts'
import { addEdit } from './schedule-edit.ts'
import { addPreview } from './schedule-preview.ts'
import { addReads } from './schedule-reads.ts'
import { addScheduleRuns } from './schedule-runs.ts'
import { addSlots } from './schedule-slots.ts'

export function addSchedules(program: Command, define: Define): void {
  const schedules = program.command('schedules').description('make, read and change schedules')
  addCreate(schedules, define)
  addReads(schedules, define)
  addEdit(schedules, define)
  addChanges(schedules, define)
  addScheduleRuns(schedules, define)
  addSlots(schedules, define)
  addPreview(schedules, define)
}
