import { z } from 'zod'

import { component } from '../component.ts'
import { expected } from '../expected.ts'
import { TRANSCRIPT_PAGE_SIZE } from '../limits.ts'
import { RUN_STATES, TRANSCRIPT_OWN_KINDS } from '../words.ts'
import { instant } from './fields.ts'
import { countInput } from './page.ts'

const transcriptLine = component(
  'TranscriptLine',
  z.object({
    id: z
      .string()
      .meta({ description: 'Where the line stands: pass it as `after` to read on from here.', examples: ['1-7'] }),
    attempt: z
      .int()
      .meta({ description: 'The attempt that recorded the line. One that is handed back keeps its number.' }),
    at: instant,
    entry: z.looseObject({ kind: z.string() }).meta({
      description:
        `What the target recorded, with \`cut: true\` if it was too long. Carillon itself writes lines of the kinds ` +
        `${TRANSCRIPT_OWN_KINDS.map((kind) => `\`${kind}\``).join(', ')}; their \`message\` says why.`,
    }),
  }),
  'What a run recorded while it ran.',
)

export const transcriptPage = component(
  'TranscriptPage',
  z.object({
    items: z.array(transcriptLine),
    nextCursor: z
      .string()
      .nullable()
      .meta({ description: 'The `after` of the next page; null if no further line is stored yet.' }),
  }),
)

const lineId = z.string(expected('the id of a line'))

export const transcriptQuery = z.strictObject({
  after: lineId.optional().meta({ description: 'The id of a line: the page begins after it.' }),
  limit: countInput(TRANSCRIPT_PAGE_SIZE)
    .optional()
    .meta({
      description:
        `The most lines of the page, 1 to ${TRANSCRIPT_PAGE_SIZE.max}. The default is ${TRANSCRIPT_PAGE_SIZE.default}. A page of ` +
        'long lines holds fewer.',
    }),
})

/** The data of an event of a transcript, by the event's name. */
export const transcriptEvents = {
  line: transcriptLine,
  end: component(
    'TranscriptEndEvent',
    z.object({ state: z.enum(RUN_STATES) }),
    'The run is over, and all of its lines were sent. The stream ends.',
  ),
} as const

export type TranscriptLine = z.infer<typeof transcriptLine>

export type TranscriptEvent = {
  [Name in keyof typeof transcriptEvents]: {
    readonly id: string
    readonly event: Name
    readonly data: z.infer<(typeof transcriptEvents)[Name]>
  }
}[keyof typeof transcriptEvents]
