import { expect, test } from 'vitest'

import { createTerminal } from './terminal.ts'

type Streams = Parameters<typeof createTerminal>[0]

/** The members of the streams that createTerminal reads. */
function streams(isTTY: boolean): Streams {
  const stream = { isTTY, columns: 80, write: () => true }
  return { stdin: stream, stdout: stream, stderr: stream } as unknown as Streams
}

test.each([
  ['a terminal', true, {}, { width: 80, hasColor: true, canAsk: true, canRedraw: true }],
  ['a terminal with NO_COLOR', true, { NO_COLOR: '1' }, { width: 80, hasColor: false, canAsk: true, canRedraw: true }],
  [
    'a terminal with an empty NO_COLOR',
    true,
    { NO_COLOR: '' },
    { width: 80, hasColor: true, canAsk: true, canRedraw: true },
  ],
  ['a dumb terminal', true, { TERM: 'dumb' }, { width: 80, hasColor: false, canAsk: true, canRedraw: false }],
  ['a pipe', false, { FORCE_COLOR: '1' }, { width: null, hasColor: false, canAsk: false, canRedraw: false }],
])('the abilities of %s are detected', (_what, isTTY, env, expected) => {
  expect(createTerminal(streams(isTTY), env)).toMatchObject(expected)
})
