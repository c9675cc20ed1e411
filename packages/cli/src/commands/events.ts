import type { FeedEvent } from '@carillon/api'
import { Option, type Command } from 'commander'

import { examples, type Define } from '../define.ts'
import { followEvents } from '../follow-events.ts'
import { wholeNumber } from '../option-values.ts'
import { padText } from '../output/cut-text.ts'
import { formatLocal, formatMs } from '../output/format-time.ts'
import { harmlessText } from '../output/harmless-text.ts'
import { styled, styleOfState } from '../output/style.ts'
import type { Terminal } from '../output/terminal.ts'

interface EventsOptions {
  readonly after?: string
  readonly count?: number
}

const CHANGE_WIDTH = 'succeeded'.length

export function addEvents(program: Command, define: Define): void {
  const events = program
    .command('events')
    .description('follow what happens in the project, live; with --json a line each')
    .option('--after <id>', 'go on after this event (from now on)')
    .addOption(new Option('--count <count>', 'end after so many (never)').argParser(wholeNumber))
  examples(events, 'carillon events', 'carillon events --json --count 10')
  define<EventsOptions>(events, async ({ cli, options, isJson, note }) => {
    const { signal, terminal } = cli
    const { after, count = Number.POSITIVE_INFINITY } = options
    let told = 0
    const feed = followEvents(cli, {
      signal,
      ...(after === undefined ? {} : { lastEventId: after }),
      onBreak: (waitMs) => note(`the connection broke: trying again in ${formatMs(waitMs)}`),
    })
    for await (const event of feed) {
      if (event.event === 'open') {
        note('following…')
        continue
      }
      terminal.writeOut(`${isJson ? JSON.stringify(event) : eventLine(terminal, event)}\n`)
      told++
      if (told >= count) return 'ok'
    }
    return 'interrupted'
  })
}

function eventLine(terminal: Terminal, event: FeedEvent): string {
  switch (event.event) {
    case 'run': {
      const { change, run } = event.data
      const slot = formatLocal(run.scheduledFor, 'UTC')
      // The run is as it is now; what it has come to since is told by its own event.
      const why = change === run.state ? `  ${harmlessText(run.explanation)}` : ''
      return `run       ${stateText(terminal, change)}  slot ${slot}${why}  schedule ${run.scheduleId}  run ${run.id}`
    }
    case 'schedule': {
      const { change, schedule, scheduleId } = event.data
      return `schedule  ${stateText(terminal, change)}  ${harmlessText(schedule?.name ?? '')}  schedule ${scheduleId}`
    }
    case 'reset':
      return `reset     ${harmlessText(event.data.reason)}`
  }
}

function stateText(terminal: Terminal, state: string): string {
  return styled(terminal, styleOfState(state), padText(harmlessText(state), CHANGE_WIDTH))
}
