import type { EventMap, EventName, Events } from '@carillon/core'
import type { Logger } from 'pino'

type Level = 'debug' | 'info' | 'warn'

/**
 * How loudly each event is told. Who did what to a schedule, and why, is the trail of E-75. What happens per slot is in the
 * ledger, so it is told only to who looks for a fault.
 */
const LEVELS: Readonly<Record<EventName, Level>> = {
  'schedule.created': 'info',
  'schedule.edited': 'info',
  'schedule.paused': 'info',
  'schedule.resumed': 'info',
  'schedule.completed': 'info',
  'schedule.deleted': 'info',
  'grant.expiring': 'warn',
  'run.began': 'debug',
  'slot.skipped': 'debug',
  'attempt.settled': 'debug',
  'attempt.fenced': 'warn',
  'run.rescued': 'warn',
  'lease.lost': 'warn',
  'audit.found': 'warn',
  // Every few minutes.
  'audit.finished': 'debug',
  'service.failed': 'warn',
}

/** Writes a line for everything that happens in this process. Of ids only, never of payloads: an event holds none. */
export function logEvents(events: Events, logger: Logger): void {
  for (const name of Object.keys(LEVELS) as EventName[]) {
    events.on(name, (event) => logger[levelOf(name, event)]({ event: name, ...event }, name.replace('.', ' ')))
  }
}

/** In a sound system an audit finds nothing, and sees everything. */
function levelOf(name: EventName, event: EventMap[EventName]): Level {
  const isAmiss = 'unaudited' in event && (event.findings > 0 || event.unaudited > 0)
  return isAmiss ? 'warn' : LEVELS[name]
}
