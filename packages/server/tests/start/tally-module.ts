import { MODULE_PORT, type ModuleManifest } from '@carillon/core'
import { z } from 'zod'

import { tallySettings, type TallySettings } from './tally-settings.ts'

/** A module as users write one: it counts the runs of each project, and refuses a run once there are too many. */
export const module = {
  port: MODULE_PORT,
  name: 'tally',
  version: '1.0.0',
  kinds: ['tally'],
  migrations: new URL('./tally-migrations/', import.meta.url),
  reasons: { tally_full: 'the project has had as many runs as it may' },
  settings: tallySettings,
  operations: {
    readTally: {
      method: 'get',
      path: '/tally',
      tag: 'tally',
      summary: 'Read the tally of the project',
      role: 'member',
      success: { status: 200, description: 'The tally.', schema: z.object({ count: z.int() }) },
      problems: [],
    },
  },
  load: () => import('./tally-code.ts'),
} satisfies ModuleManifest<TallySettings>
