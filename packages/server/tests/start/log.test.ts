import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, onTestFinished, test } from 'vitest'

import { createLogger, stderrSink } from '../../src/start/log.ts'
import { createFolder } from './folder.ts'

function openFile(path: string): number {
  const fd = openSync(path, 'a')
  onTestFinished(() => closeSync(fd))
  return fd
}

test('a line is in the file as soon as it is logged', () => {
  const path = join(createFolder(), 'log')
  const logger = createLogger({ logLevel: 'info' }, stderrSink(openFile(path)))

  logger.info({ event: 'service.started' }, 'service started')

  expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject({ level: 'info', event: 'service.started' })
})

test.runIf(process.platform === 'linux')(
  'the process survives a full disk under its log, and drops most of the lines',
  () => {
    const stream = stderrSink(openFile('/dev/full'))
    const logger = createLogger({ logLevel: 'info' }, stream)
    let dropped = 0
    ;(stream as unknown as NodeJS.EventEmitter).on('drop', () => (dropped += 1))

    for (let n = 0; n < 200; n += 1) logger.warn({ text: 'x'.repeat(10_000) }, 'unwritten')

    expect(dropped).toBeGreaterThan(50)
  },
)
