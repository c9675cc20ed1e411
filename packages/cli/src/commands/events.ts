import type { LiveEvent } from '@carillon/api'
import { Option, type Command } from 'commander'

import { dropUndefined, wholeNumber } from '../options/option-values.ts'
import { formatLocal, formatMs } from '../output/format-time.ts'
import { styled, styleOfState } from '../output/style.ts'
import type { Screen } from '../output/terminal.ts'
import { escapeControls, padText } from '../output/text.ts'
import { followEvents } from '../service/follow-events.ts'
import { examples, type Define } from './define.ts'

interface EventsOptions {
  readonly after?: string
  readonly count?: number
}

const CHANGE_WIDTH = 'succeeded'.length

export function addEventsCommand(program: Command, define: Define): void {
  const events = program
    .command('events')
    .description('follow the events of the project live; --json prints one event per line')
    .option('--after <id>', 'start after this event (default: now)')
    .addOption(new Option('--count <count>', 'stop after this many events (default: never)').argParser(wholeNumber))
  examples(events, 'carillon events', 'carillon events --json --count 10')
  define<EventsOptions>(events, async ({ cli, options, isJson, note }) => {
    const { signal, terminal } = cli
    const { after, count = Number.POSITIVE_INFINITY } = options
    let shown = 0
    const stream = followEvents(cli, {
      signal,
      ...dropUndefined({ lastEventId: after }),
      onBreak: (waitMs) => note(`the connection broke: reconnecting in ${formatMs(waitMs)}`),
    })
    for await (const event of stream) {
      if (event.event === 'open') {
        note('following events…')
        continue
      }
      terminal.writeOut(`${isJson ? JSON.stringify(event) : eventLine(terminal, event)}\n`)
      shown++
      if (shown >= count) return 'ok'
    }
    return 'interrupted'
  })
}

function eventLine(screen: Screen, event: LiveEvent): string {
  switch (event.event) {
    case 'run': {
      const { change, run } = event.data
      const slot = formatLocal(run.scheduledFor, 'UTC')
      // The event carries the run as it is now. If the run has changed again since, its explanation belongs to a later event.
      const why = change === run.state ? `  ${escapeControls(run.explanation)}` : ''
      return `run       ${changeText(screen, change)}  slot ${slot}${why}  schedule ${run.scheduleId}  run ${run.id}`
    }
    case 'schedule': {
      const { change, schedule, scheduleId } = event.data
      return `schedule  ${changeText(screen, change)}  ${escapeControls(schedule?.name ?? '')}  schedule ${scheduleId}`
    }
    case 'reset':
      return `reset     ${escapeControls(event.data.reason)}`
  }
}

function changeText(screen: Screen, change: string): string {
  return styled(screen, styleOfState(change), padText(escapeControls(change), CHANGE_WIDTH))
}
