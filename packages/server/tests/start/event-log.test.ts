import { Events, type EventMap, type EventName } from '@carillon/core'
import { expect, test } from 'vitest'

import { createLogger, logEvents } from '../../src/start/log.ts'
import type { Settings } from '../../src/start/settings.ts'

/** Events, and the log lines that they cause. */
function setup(logLevel: Settings['logLevel'] = 'info') {
  const lines: Record<string, unknown>[] = []
  const logger = createLogger(
    { logLevel },
    { write: (line) => lines.push(JSON.parse(line) as Record<string, unknown>) },
  )
  const events = new Events()
  logEvents(events, logger)
  return { events, lines }
}

const schedule = { tenantId: 'acme', projectId: 'web', scheduleId: 's-1', actor: 'user:ada' }
const slot = {
  tenantId: 'acme',
  projectId: 'web',
  scheduleId: 's-1',
  targetKind: 'http',
  scheduledFor: 1_772_442_000_000,
}

test('every change of a schedule is logged with its actor, the change and the reason', () => {
  const { events, lines } = setup()

  events.emit('schedule.created', schedule)
  events.emit('schedule.edited', { ...schedule, revision: 2 })
  events.emit('schedule.paused', { ...schedule, reason: 'The provider is down' })
  events.emit('schedule.resumed', schedule)
  events.emit('schedule.completed', schedule)
  events.emit('schedule.deleted', schedule)

  expect(lines.map(({ event, level, msg }) => [event, level, msg])).toEqual([
    ['schedule.created', 'info', 'schedule created'],
    ['schedule.edited', 'info', 'schedule edited'],
    ['schedule.paused', 'info', 'schedule paused'],
    ['schedule.resumed', 'info', 'schedule resumed'],
    ['schedule.completed', 'info', 'schedule completed'],
    ['schedule.deleted', 'info', 'schedule deleted'],
  ])
  expect(lines[2]).toMatchObject({ ...schedule, reason: 'The provider is down' })
  expect(lines[2]?.['time']).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/)
})

test('events of single slots are logged only at the level debug', () => {
  const perSlot: { [Name in EventName]?: EventMap[Name] } = {
    'run.began': { ...slot, runId: 'r-1', latenessMs: 2 },
    'slot.skipped': { ...slot, reason: 'overlap' },
    'attempt.settled': { ...slot, runId: 'r-1', attempt: 1, state: 'succeeded', durationMs: 5, retryAt: null },
  }
  const [usual, looking] = [setup('info'), setup('debug')]

  for (const { events } of [usual, looking]) {
    for (const [name, event] of Object.entries(perSlot)) events.emit(name as EventName, event)
  }

  expect(usual.lines).toEqual([])
  expect(looking.lines.map(({ event, level }) => [event, level])).toEqual(
    Object.keys(perSlot).map((name) => [name, 'debug']),
  )
})

test('an expiring grant, a lost lease, a rescue, a fenced write and an audit with findings are logged as warnings', () => {
  const { events, lines } = setup('warn')
  const run = { runId: 'r-1', scheduleId: 's-1', scheduledFor: 0 }

  const { tenantId, projectId } = schedule
  const grant = { grantId: 'g-1', subject: 'user:ada', expiresAt: 0, scheduleIds: ['s-1'] }

  events.emit('grant.expiring', { tenantId, projectId, ...grant })
  events.emit('lease.lost', { workerId: 'w-1' })
  events.emit('run.rescued', run)
  events.emit('attempt.fenced', run)
  events.emit('audit.found', { findings: 1, repaired: 1 })
  events.emit('audit.finished', { findings: 0, repaired: 0, slots: 10, unaudited: 0 })
  events.emit('audit.finished', { findings: 1, repaired: 1, slots: 10, unaudited: 0 })
  events.emit('audit.finished', { findings: 0, repaired: 0, slots: 10, unaudited: 1 })

  expect(lines.map(({ event, level }) => [event, level])).toEqual([
    ['grant.expiring', 'warn'],
    ['lease.lost', 'warn'],
    ['run.rescued', 'warn'],
    ['attempt.fenced', 'warn'],
    ['audit.found', 'warn'],
    ['audit.finished', 'warn'],
    ['audit.finished', 'warn'],
  ])
  expect(lines[0]).toMatchObject({ tenantId, projectId, ...grant })
  expect(lines[1]).toMatchObject({ workerId: 'w-1' })
})

test('a failing service is logged with its error and its cause, but without the rows that Postgres quotes', () => {
  const { events, lines } = setup()
  const refusal = Object.assign(new Error('new row violates a check'), {
    code: '23514',
    detail: 'FailingServices row contains (the payload).',
  })
  const unreadable = Object.assign(new Error('invalid input syntax for type json: "the payload"'), { code: '22P02' })

  events.emit('service.failed', { service: 'loop', error: new Error('settling failed', { cause: refusal }) })
  events.emit('service.failed', { service: 'loop', error: unreadable })
  events.emit('service.failed', { service: 'loop', error: 'a word' })

  expect(lines).toMatchObject([
    {
      level: 'warn',
      service: 'loop',
      error: {
        message: 'settling failed',
        stack: expect.arrayContaining([expect.stringMatching(/^at /)]) as unknown,
        cause: { message: 'new row violates a check', code: '23514' },
      },
    },
    { error: { message: 'Postgres cannot read a value', code: '22P02' } },
    { error: { message: 'a word' } },
  ])
  expect(JSON.stringify(lines)).not.toContain('payload')
})
