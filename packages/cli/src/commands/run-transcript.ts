import type { Client, TranscriptLine } from '@carillon/api'
import type { Command } from 'commander'

import { dropUndefined } from '../options/option-values.ts'
import { formatLocal, formatMs } from '../output/format-time.ts'
import { styled } from '../output/style.ts'
import type { Screen } from '../output/terminal.ts'
import { escapeControls, padText } from '../output/text.ts'
import type { Cli } from '../process/cli.ts'
import type { Exit } from '../process/exit-codes.ts'
import { connect, retryWhileBusy } from '../service/connect.ts'
import { followTranscript } from '../service/follow-events.ts'
import { exitForRun } from '../service/wait-for-run.ts'
import { examples, type Define, type Invocation } from './define.ts'

interface TranscriptOptions {
  readonly after?: string
  readonly follow?: boolean
}

const KIND_WIDTH = 'tool_result'.length

export function addTranscript(runs: Command, define: Define): void {
  const transcript = runs
    .command('transcript')
    .description('show what a run recorded; --json prints one line per line')
    .argument('<id>', 'id of the run')
    .option('--after <id>', 'start after this line (default: the first line)')
    .option('--follow', 'go on until the run is over; exit code 3 if it did not succeed')
  examples(
    transcript,
    'carillon runs transcript 01995c0e-0000-7000-8000-000000000001',
    'carillon runs transcript 01995c0e-0000-7000-8000-000000000001 --follow --json',
  )
  define<TranscriptOptions>(transcript, async (invocation) => {
    const { cli, args, options, isJson } = invocation
    const id = args[0] ?? ''
    const print = (line: TranscriptLine): void =>
      cli.terminal.writeOut(`${isJson ? JSON.stringify(line) : transcriptLineText(cli.terminal, line)}\n`)
    return options.follow === true ? followRun(invocation, id, print) : showStored(invocation, id, print)
  })
}

async function showStored(
  { cli, options, note }: Invocation<TranscriptOptions>,
  id: string,
  print: (line: TranscriptLine) => void,
): Promise<Exit> {
  let count = 0
  for await (const line of storedLines(cli, connect(cli), id, options.after)) {
    print(line)
    count += 1
  }
  if (count === 0) note('no lines: most targets record nothing')
  return 'ok'
}

/** All lines of a run that are stored by now, page by page. */
async function* storedLines(cli: Cli, client: Client, id: string, first?: string): AsyncGenerator<TranscriptLine> {
  const read = (after: string | undefined) =>
    retryWhileBusy(cli, () => client.runs.transcript(id, dropUndefined({ after })))
  let page = await read(first)
  yield* page.items
  while (page.nextCursor !== null) {
    page = await read(page.nextCursor)
    yield* page.items
  }
}

async function followRun(
  { cli, options, note }: Invocation<TranscriptOptions>,
  id: string,
  print: (line: TranscriptLine) => void,
): Promise<Exit> {
  const stream = followTranscript(cli, id, {
    signal: cli.signal,
    ...dropUndefined({ lastEventId: options.after }),
    onBreak: (waitMs) => note(`the connection broke: reconnecting in ${formatMs(waitMs)}`),
  })
  for await (const followed of stream) {
    if (followed.event === 'line') print(followed.data)
    if (followed.event !== 'end') continue
    note(`the run is ${followed.data.state}`)
    return exitForRun(followed.data)
  }
  return 'interrupted'
}

/** A line of a transcript: its instant in UTC, its attempt, its kind, and its text or else its fields as JSON. */
function transcriptLineText(screen: Screen, { at, attempt, entry }: TranscriptLine): string {
  const { kind, ...fields } = entry
  const kindText = styled(screen, 'dim', padText(escapeControls(kind), KIND_WIDTH))
  return `${formatLocal(at, 'UTC')}  ${attempt}  ${kindText}  ${escapeControls(contentOf(fields))}`
}

function contentOf(fields: Readonly<Record<string, unknown>>): string {
  const { text, ...others } = fields
  return typeof text === 'string' && Object.keys(others).length === 0 ? text : JSON.stringify(fields)
}
