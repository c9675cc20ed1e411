import { foundText } from '@carillon/api'
import type { Caller } from '@carillon/core'

import { logChange } from '../change-log.ts'
import type { HandlersOf } from '../handler.ts'
import { ProblemError } from '../problems/problem-error.ts'

export const projectHandlers: HandlersOf<'deleteProjectSchedules' | 'previewPurge' | 'purgeProject'> = {
  deleteProjectSchedules: async ({ service: { scheduler }, caller, params: { id } }) => {
    requireOwn(caller, id)
    return { body: { ...(await scheduler.deleteProject(caller)) } }
  },

  previewPurge: async ({ service: { projects }, caller, params: { id } }) => {
    requireOwn(caller, id)
    return { body: { ...(await projects.previewPurge(caller)) } }
  },

  purgeProject: async ({ service: { projects, logger }, caller, params: { id }, body: { name } }) => {
    requireOwn(caller, id)
    requireConfirmed(id, name)
    const removed = await projects.purge(caller, { confirm: name })
    logChange(logger, 'project.purged', caller, { ...removed })
    return { body: { ...removed } }
  },
}

/** I9: another project is not even known to exist. */
function requireOwn({ projectId }: Caller, id: string): void {
  if (id === projectId) return
  throw new ProblemError('project_not_found', `expected the project of the key that asks, got ${foundText(id)}`)
}

/** The core wants the same; here the field has the name that whoever asked knows. */
function requireConfirmed(id: string, name: string): void {
  if (name === id) return
  const message = `expected the name of the project, ${foundText(id)}, got ${foundText(name)}: nothing was removed`
  throw new ProblemError('purge_refused', `name: ${message}`, { errors: [{ field: 'name', message }] })
}
