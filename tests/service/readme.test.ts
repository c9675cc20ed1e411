import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

import { createClient } from '@carillon/api'
import { expect, onTestFinished, test } from 'vitest'

import { REPOSITORY, runTool } from '../house/run-tool.ts'

/** The commands of the README's section, one list per block. */
function commandsOf(section: string): string[][] {
  const readme = readFileSync(join(REPOSITORY, 'README.md'), 'utf8')
  const [, text = ''] = new RegExp(`^## ${section}$(.*?)^## `, 'ms').exec(readme) ?? []
  return [...text.matchAll(/^```sh\n(.*?)^```/gms)].map(([, block = '']) => block.trim().split('\n'))
}

async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

test('what the README says to type makes a schedule, which fires within its second, and shows its run', async () => {
  const [[install, start = ''] = [], commands = []] = commandsOf('Start')
  expect([install, start]).toEqual(['npm install', 'npm start'])
  expect(commands).toHaveLength(3)
  // A folder and a port of its own, so that a Carillon of whoever runs the tests is left alone. The rest is as written.
  const folder = mkdtempSync(join(tmpdir(), 'carillon-readme-'))
  chmodSync(folder, 0o711)
  const port = await findFreePort()
  const env = {
    CARILLON_DATA_DIR: join(folder, '.carillon'),
    CARILLON_PORT: String(port),
    CARILLON_URL: `http://127.0.0.1:${port}`,
  }
  Object.assign(process.env, env)
  const service = spawn(start, { shell: true, cwd: REPOSITORY, detached: true, stdio: ['ignore', 'pipe', 'inherit'] })
  const lines: string[] = []
  const output = createInterface(service.stdout).on('line', (line) => lines.push(line))
  const exited = once(service, 'exit')
  onTestFinished(async () => {
    if (service.exitCode === null && service.signalCode === null) process.kill(-(service.pid ?? 0), 'SIGKILL')
    await exited
    // Its Postgres may still be putting things away.
    rmSync(folder, { recursive: true, force: true, maxRetries: 20 })
  })
  while (!lines.some((line) => line.includes('npx carillon schedules create'))) {
    const isOver = await Promise.race([once(output, 'line').then(() => false), exited.then(() => true)])
    if (isOver) throw new Error(`${start} ended: ${lines.join('\n')}`)
  }

  const shown: string[] = []
  for (const command of commands) {
    const { exitCode, stdout } = await runTool(REPOSITORY, 'sh', ['-c', command.replaceAll(':7400', `:${port}`)])
    expect({ command, exitCode }).toEqual({ command, exitCode: 0 })
    shown.push(stdout)
  }
  const client = createClient(env.CARILLON_URL, readFileSync(join(env.CARILLON_DATA_DIR, 'admin.key'), 'utf8').trim())
  const [schedule] = (await client.schedules.list()).items
  const { items: runs } = await client.schedules.runs(schedule?.id ?? '')
  process.kill(-(service.pid ?? 0), 'SIGTERM')
  await exited

  expect(shown[0]).toContain('First light')
  expect(shown[1]).toMatch(/^First light +active/m)
  expect(shown[2]).toMatch(/^\S+ \S+Z +succeeded +\d+ ms .* Ran\. /m)
  expect(runs).toMatchObject([{ state: 'succeeded', attemptCount: 1 }])
  expect(runs[0]?.latenessMs).toBeLessThan(1000)
  expect(lines.join('\n')).toContain(`sign-in?token=`)
}, 120_000)
