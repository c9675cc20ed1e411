import { PassThrough } from 'node:stream'

import { describe, expect, test } from 'vitest'

import type { Cli } from '../src/process/cli.ts'
import { runCli } from '../src/run-cli.ts'
import { followEvents } from '../src/service/follow-events.ts'
import { eventText, openStream, startScriptedService } from './scripted-service.ts'

const RUN_ID = '01995c0e-0000-7000-8000-000000000001'
const SCHEDULE_ID = '01995c0e-0000-7000-8000-000000000002'

function runOf(state: string): object {
  return { id: RUN_ID, scheduleId: SCHEDULE_ID, state, attempts: [] }
}

/** A command line whose clock records each wait instead of waiting. */
function setup(url: string) {
  const waits: number[] = []
  let [stdout, stderr] = ['', '']
  const cli: Cli = {
    env: { CARILLON_URL: url, CARILLON_API_KEY: 'key' },
    cwd: import.meta.dirname,
    stdin: new PassThrough(),
    signal: new AbortController().signal,
    clock: {
      now: () => 0,
      sleep: async (ms) => void waits.push(ms),
      after: () => () => undefined,
      every: () => undefined,
    },
    terminal: {
      writeOut: (text) => (stdout += text),
      writeError: (text) => (stderr += text),
      width: null,
      hasColor: false,
      canAsk: false,
      canRedraw: false,
    },
  }
  return { cli, waits, output: () => ({ stdout, stderr }) }
}

describe('following events', () => {
  test('reconnects after the last event when the connection breaks, and prints a note', async () => {
    await using service = await startScriptedService((response, { headers }) => {
      const isBack = headers['last-event-id'] === '7'
      openStream(response, eventText(isBack ? '8' : '7', 'reset', { reason: isBack ? 'second' : 'first' }))
      if (!isBack) response.end()
    })
    const { cli, waits, output } = setup(service.url)

    const exitCode = await runCli(['events', '--count', '2'], cli)

    expect(exitCode).toBe(0)
    expect(output().stdout).toBe('reset     first\nreset     second\n')
    expect(output().stderr).toBe('following events…\nthe connection broke: reconnecting in 500 ms\nfollowing events…\n')
    expect(waits).toEqual([500])
  })

  test('doubles the delay while the server is down, and starts again with the first delay after a connection', async () => {
    let count = 0
    await using service = await startScriptedService((response) => {
      count++
      // The server accepts, fails four times, accepts, closes, and accepts again.
      if (count === 1 || count === 6) {
        openStream(response)
        response.end()
      } else if (count < 6) response.destroy()
      else openStream(response, eventText('1', 'reset', { reason: 'back' }))
    })
    const { cli, waits } = setup(service.url)

    await runCli(['events', '--count', '1'], cli)

    expect(waits).toEqual([500, 1000, 2000, 4000, 8000, 500])
  })

  test('throws if the first connection fails', async () => {
    const { cli } = setup('http://127.0.0.1:1')

    await expect(followEvents(cli, { signal: cli.signal }).next()).rejects.toThrow(
      'expected an answer from a Carillon server',
    )
  })
})

describe('waiting for a run', () => {
  test('reads the run only after the event stream is open, so that it cannot miss the end', async () => {
    let feed: { write: (text: string) => void } | undefined
    await using service = await startScriptedService((response, { url = '', method }) => {
      const json = (value: unknown): void => {
        response
          .writeHead(method === 'POST' ? 201 : 200, { 'content-type': 'application/json' })
          .end(JSON.stringify(value))
      }
      if (url.endsWith('/events')) {
        openStream(response)
        feed = response
      } else if (url.endsWith('/run')) json(runOf('pending'))
      else if (url.includes('/schedules/')) json({ id: SCHEDULE_ID, name: 'x', cadence: {} })
      else if (feed === undefined) json(runOf('running'))
      else {
        // The first read comes too early: the run ends right after it.
        json(
          runOf(
            service.requests.filter((request) => request.url?.includes('/runs/')).length > 1 ? 'succeeded' : 'running',
          ),
        )
        feed.write(eventText('1', 'run', { change: 'succeeded', run: runOf('succeeded') }))
      }
    })
    const { cli, output } = setup(service.url)

    const exitCode = await runCli(['schedules', 'run', SCHEDULE_ID, '--wait', '--json'], cli)

    expect(exitCode).toBe(0)
    expect(JSON.parse(output().stdout)).toMatchObject({ state: 'succeeded' })
    const paths = service.requests.map(({ url }) => url?.replace('/api/v1', ''))
    expect(paths).toEqual([
      `/schedules/${SCHEDULE_ID}`,
      `/schedules/${SCHEDULE_ID}/run`,
      '/events',
      `/runs/${RUN_ID}`,
      `/runs/${RUN_ID}`,
    ])
  })

  test('reads the run again after a reconnect, because the event of its end may be lost', async () => {
    let reads = 0
    await using service = await startScriptedService((response, { url = '', method }) => {
      const json = (value: unknown): void => {
        response
          .writeHead(method === 'POST' ? 201 : 200, { 'content-type': 'application/json' })
          .end(JSON.stringify(value))
      }
      if (url.endsWith('/events')) {
        openStream(response)
        if (reads === 0) response.end()
      } else if (url.endsWith('/run')) json(runOf('pending'))
      else if (url.includes('/schedules/')) json({ id: SCHEDULE_ID, name: 'x', cadence: {} })
      else {
        reads++
        json(runOf(reads === 1 ? 'running' : 'failed'))
      }
    })
    const { cli } = setup(service.url)

    expect(await runCli(['schedules', 'run', SCHEDULE_ID, '--wait', '--json'], cli)).toBe(3)
  })
})
