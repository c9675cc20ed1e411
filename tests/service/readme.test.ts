import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { createClient } from '@carillon/api'
import { expect, onTestFinished, test } from 'vitest'

import { REPOSITORY, runTool } from '../house/run-tool.ts'
import { findFreePort, NpmStart } from './npm-start.ts'

/** The commands in a section of the README, as one list per block. */
function commandsOf(section: string): string[][] {
  const readme = readFileSync(join(REPOSITORY, 'README.md'), 'utf8')
  const [, text = ''] = new RegExp(`^## ${section}$(.*?)^## `, 'ms').exec(readme) ?? []
  return [...text.matchAll(/^```sh\n(.*?)^```/gms)].map(([, block = '']) => block.trim().split('\n'))
}

test('the commands of the README create a schedule that fires, and show its run', async () => {
  const [[install, start = ''] = [], commands = [], otherPort = []] = commandsOf('Start')
  expect([install, start]).toEqual(['npm install', 'npm start'])
  expect(otherPort).toEqual(['CARILLON_PORT=7500 npm start', 'export CARILLON_URL=http://127.0.0.1:7500'])
  expect(commands).toHaveLength(3)
  // The README names a folder and a port of its own, so a Carillon that already runs on this machine is not affected.
  const folder = mkdtempSync(join(tmpdir(), 'carillon-readme-'))
  chmodSync(folder, 0o711)
  const port = await findFreePort()
  const env = {
    CARILLON_DATA_DIR: join(folder, '.carillon'),
    CARILLON_PORT: String(port),
    CARILLON_URL: `http://127.0.0.1:${port}`,
  }
  Object.assign(process.env, env)
  const service = new NpmStart({ env, command: start })
  onTestFinished(async () => {
    if (service.child.exitCode === null && service.child.signalCode === null) service.signal('SIGKILL', 'group')
    await service.exited
    // Its Postgres may still be writing files.
    rmSync(folder, { recursive: true, force: true, maxRetries: 20 })
  })
  await service.said('npx carillon schedules create')

  const shown: string[] = []
  for (const command of commands) {
    const { exitCode, stdout } = await runTool(REPOSITORY, 'sh', ['-c', command.replaceAll(':7400', `:${port}`)])
    expect({ command, exitCode }).toEqual({ command, exitCode: 0 })
    shown.push(stdout)
  }
  const client = createClient(env.CARILLON_URL, readFileSync(join(env.CARILLON_DATA_DIR, 'admin.key'), 'utf8').trim())
  const [schedule] = (await client.schedules.list()).items
  const { items: runs } = await client.schedules.runs(schedule?.id ?? '')
  service.signal('SIGTERM', 'group')
  await service.exited

  expect(shown[0]).toContain('First light')
  expect(shown[1]).toMatch(/^First light +active/m)
  expect(shown[2]).toMatch(/^\S+ \S+Z +succeeded +\d+ ms .* The run succeeded\. /m)
  expect(runs).toMatchObject([{ state: 'succeeded', attemptCount: 1 }])
  expect(service.lines.join('\n')).toContain(`sign-in?token=`)
}, 120_000)
