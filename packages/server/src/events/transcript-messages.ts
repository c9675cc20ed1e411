import type { TranscriptLine as WireLine } from '@carillon/api'
import { isTranscriptComplete, type Caller, type TranscriptLine, type TranscriptPage } from '@carillon/core'

/** One line as a server-sent event. */
interface LineMessage {
  readonly id: string
  readonly text: string
}

/** A page of a transcript as a stream sends it. */
export interface TranscriptMessages {
  readonly lines: readonly LineMessage[]
  /** True if more lines are stored already. */
  readonly isMore: boolean
  /** The last event, if nothing follows these lines; undefined while the run is open. */
  readonly end: string | undefined
}

/** Reads the page of a transcript after a line; undefined: from the first line on. */
export type ReadTranscript = (caller: Caller, runId: string, after: string | undefined) => Promise<TranscriptMessages>

/** The longest page that a stream reads at once. The limit in bytes usually ends a page earlier. */
const PAGE = 200

export function createTranscriptReader(
  scheduler: {
    transcript(caller: Caller, runId: string, page: { after?: string; limit: number }): Promise<TranscriptPage>
  },
  toLine: (line: TranscriptLine) => WireLine,
): ReadTranscript {
  return async (caller, runId, after) => {
    const page = await scheduler.transcript(caller, runId, { limit: PAGE, ...(after !== undefined && { after }) })
    return {
      // JSON contains no raw line breaks, so the data is one line.
      lines: page.lines.map((line) => ({
        id: line.id,
        text: `id: ${line.id}\nevent: line\ndata: ${JSON.stringify(toLine(line))}\n\n`,
      })),
      isMore: page.isMore,
      // Without an id: a client that connects again continues after the last line.
      end: isTranscriptComplete(page) ? `event: end\ndata: ${JSON.stringify({ state: page.state })}\n\n` : undefined,
    }
  }
}
