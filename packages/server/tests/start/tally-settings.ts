import { z } from 'zod'

export const tallySettings = z.object({
  mostRuns: z.int('expected a whole number').min(1).default(1000),
  apiToken: z.string().optional(),
})

export type TallySettings = z.output<typeof tallySettings>
