import { spawn } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'

import { expect, test } from 'vitest'

import { createLogger } from '../../src/start/log.ts'
import { createMetrics } from '../../src/start/metrics.ts'
import { surviveRejections } from '../../src/start/unhandled-rejections.ts'

function setup() {
  const lines: Record<string, unknown>[] = []
  const write = (line: string): void => void lines.push(JSON.parse(line) as Record<string, unknown>)
  const logger = createLogger({ logLevel: 'info' }, { write })
  const [metrics, exits] = [createMetrics(), [] as number[]]
  const process = Object.assign(new EventEmitter(), { exit: (code: number) => exits.push(code) })
  surviveRejections(process, { logger, meter: metrics.meter })
  const counted = async (): Promise<string | undefined> =>
    /^process_unhandled_rejections_total (\d+)$/m.exec(await metrics.renderMetrics())?.[1]
  return { lines, process, exits, counted }
}

test('an unhandled rejection is logged with its stack and counted, and the process continues', async () => {
  const { lines, process, exits, counted } = setup()

  const before = await counted()
  process.emit('unhandledRejection', new Error('the connection is gone'))
  process.emit('unhandledRejection', 'a word')

  expect([before, await counted(), exits]).toEqual(['0', '2', []])
  expect(lines).toMatchObject([
    {
      level: 'error',
      event: 'process.unhandled_rejection',
      error: {
        message: 'the connection is gone',
        stack: expect.arrayContaining([expect.stringMatching(/^at /)]) as unknown,
      },
    },
    { level: 'error', event: 'process.unhandled_rejection', error: { message: 'a word' } },
  ])
})

test('an uncaught exception is logged and ends the process, whose state is unknown', async () => {
  const { lines, process, exits, counted } = setup()

  process.emit('uncaughtException', new Error('half done'), 'uncaughtException')

  expect([await counted(), exits]).toEqual(['0', [1]])
  expect(lines).toMatchObject([
    { level: 'error', event: 'process.uncaught_exception', error: { message: 'half done' } },
  ])
})

/** Runs a process that handles rejections. A promise is rejected in it, and with `throw` an exception follows. */
async function runWithNet(flags: readonly string[], then: 'nothing' | 'throw') {
  const script = fileURLToPath(new URL('./reject-in-child.ts', import.meta.url))
  const child = spawn(process.execPath, [...flags, script, then], { stdio: ['ignore', 'pipe', 'pipe'] })
  const [said, log] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  const events = log
    .trim()
    .split('\n')
    .map((line) => (JSON.parse(line) as { event: string }).event)
  return { said, events, exitCode: child.exitCode }
}

test.each([[], ['--unhandled-rejections=strict']])('the process survives a rejection (flags: %s)', async (...flags) => {
  expect(await runWithNet(flags.filter(Boolean), 'nothing')).toEqual({
    said: 'still here, 1 counted\n',
    events: ['process.unhandled_rejection'],
    exitCode: 0,
  })
})

test('the process exits with 1 after an exception', async () => {
  expect(await runWithNet([], 'throw')).toEqual({
    said: 'still here, 1 counted\n',
    events: ['process.unhandled_rejection', 'process.uncaught_exception'],
    exitCode: 1,
  })
})
