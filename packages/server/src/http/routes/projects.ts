import { foundText } from '@carillon/api'

import type { HandlersOf } from '../handler.ts'
import { ProblemError } from '../problems/problem-error.ts'

export const projectHandlers: HandlersOf<'deleteProjectSchedules'> = {
  deleteProjectSchedules: async ({ service: { scheduler }, caller, params: { id } }) => {
    // I9: another project is not even known to exist.
    if (id !== caller.projectId) {
      throw new ProblemError('project_not_found', `expected the project of the key that asks, got ${foundText(id)}`)
    }
    return { body: { ...(await scheduler.deleteProject(caller)) } }
  },
}
