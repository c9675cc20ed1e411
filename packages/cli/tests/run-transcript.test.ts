import { PassThrough } from 'node:stream'

import { expect, test } from 'vitest'

import type { Cli } from '../src/process/cli.ts'
import { runCli } from '../src/run-cli.ts'
import { eventText, openStream, startScriptedService, type Answer } from './scripted-service.ts'

const RUN_ID = '01995c0e-0000-7000-8000-000000000001'

function lineOf(seq: number, entry: object): object {
  return { id: `1-${seq}`, attempt: 1, at: '2026-03-02T09:01:00.250Z', entry }
}

const HELLO = lineOf(1, { kind: 'text', text: 'hello' })
const CALL = lineOf(2, { kind: 'tool', name: 'search', input: { q: 'bells\u001B[31m' } })

/** Runs the command against a service whose answers the test writes. */
async function run(answer: Answer, ...options: readonly string[]) {
  await using service = await startScriptedService(answer)
  let [stdout, stderr] = ['', '']
  const cli: Cli = {
    env: { CARILLON_URL: service.url, CARILLON_API_KEY: 'key' },
    cwd: import.meta.dirname,
    stdin: new PassThrough(),
    signal: new AbortController().signal,
    clock: { now: () => 0, sleep: async () => undefined, after: () => () => undefined, every: () => undefined },
    terminal: {
      writeOut: (text) => (stdout += text),
      writeError: (text) => (stderr += text),
      width: null,
      hasColor: false,
      canAsk: false,
      canRedraw: false,
    },
  }
  const exitCode = await runCli(['runs', 'transcript', RUN_ID, ...options], cli)
  return { exitCode, stdout, stderr, paths: service.requests.map(({ url }) => url) }
}

const pages: Answer = (response, { url }) => {
  const body = url?.endsWith('after=1-1') ? { items: [CALL], nextCursor: null } : { items: [HELLO], nextCursor: '1-1' }
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

test('all stored lines are shown, page by page, each on one line without control characters', async () => {
  const { exitCode, stdout, paths } = await run(pages)

  expect(exitCode).toBe(0)
  expect(stdout).toBe(
    '2026-03-02 09:01:00.250Z  1  text         hello\n' +
      '2026-03-02 09:01:00.250Z  1  tool         {"name":"search","input":{"q":"bells\\u001b[31m"}}\n',
  )
  expect(paths).toEqual([`/api/v1/runs/${RUN_ID}/transcript`, `/api/v1/runs/${RUN_ID}/transcript?after=1-1`])
})

test('--json prints each line as JSON on a line of its own, and --after begins after a line', async () => {
  const { stdout } = await run(pages, '--json', '--after', '1-1')

  expect(stdout).toBe(`${JSON.stringify(CALL)}\n`)
})

test('a run that recorded nothing gets a note', async () => {
  const { exitCode, stdout, stderr } = await run((response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"items":[],"nextCursor":null}')
  })

  expect({ exitCode, stdout, stderr }).toEqual({
    exitCode: 0,
    stdout: '',
    stderr: 'no lines: most targets record nothing\n',
  })
})

test.each([
  ['succeeded', 0],
  ['failed', 3],
])(
  '--follow goes on until the run is over, continues after a broken connection, and a run that %s gives exit code %d',
  async (state, code) => {
    const { exitCode, stdout, stderr, paths } = await run((response, { headers }) => {
      if (headers['last-event-id'] === undefined) {
        openStream(response, eventText('1-1', 'line', HELLO))
        response.end()
      } else {
        expect(headers['last-event-id']).toBe('1-1')
        openStream(response, eventText('1-2', 'line', CALL), `event: end\ndata: {"state":"${state}"}\n\n`)
      }
    }, '--follow')

    expect(exitCode).toBe(code)
    expect(stdout.match(/^2026.*$/gm)).toHaveLength(2)
    expect(stderr).toBe(`the connection broke: reconnecting in 500 ms\nthe run is ${state}\n`)
    expect(paths).toEqual(Array(2).fill(`/api/v1/runs/${RUN_ID}/transcript/live`))
  },
)
