import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'

import { describe, expect, onTestFinished, test } from 'vitest'

import { findPortHolder } from '../../src/start/listening.ts'
import { holder } from './port-holder.ts'

async function listenOn(host: string): Promise<number> {
  const server = createServer().listen(0, host)
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return (server.address() as AddressInfo).port
}

describe.runIf(process.platform === 'linux')('the holder of a port', () => {
  test.each([
    ['127.0.0.1', '127.0.0.1'],
    ['0.0.0.0', '127.0.0.1'],
    ['127.0.0.1', '0.0.0.0'],
    ['::', '127.0.0.1'],
    ['::1', '::1'],
  ])('a program that listens on %s holds the port for %s', async (host, wanted) => {
    const port = await listenOn(host)

    expect(findPortHolder(wanted, port)).toBe(holder())
  })

  test('a program that listens on another address of this machine does not hold the port', async () => {
    const port = await listenOn('127.0.0.2')

    expect(findPortHolder('127.0.0.1', port)).toBeUndefined()
  })

  test('another process is named by its program and its id', async () => {
    const script = `const s = require('net').createServer().listen(0, '127.0.0.1', () => console.log(s.address().port))`
    const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
    onTestFinished(() => void child.kill('SIGKILL'))
    const [port] = (await once(child.stdout, 'data')) as [Buffer]

    expect(findPortHolder('127.0.0.1', Number(port.toString()))).toBe(`node (process ${child.pid})`)
  })

  test('a free port has no holder', () => {
    expect(findPortHolder('127.0.0.1', 1)).toBeUndefined()
  })
})
