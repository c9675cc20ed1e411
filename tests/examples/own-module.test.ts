import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { expect, onTestFinished, test } from 'vitest'

import { REPOSITORY, runTool } from '../house/run-tool.ts'
import { findFreePort, NpmStart } from '../service/npm-start.ts'

const EXAMPLE = join(REPOSITORY, 'examples/own-module')
const BINARY = join(REPOSITORY, 'packages/cli/bin/carillon.js')

test('`carillon up` serves the kind of a module that CARILLON_MODULES names, and a schedule of it runs', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'carillon-own-module-'))
  const port = String(await findFreePort())
  const env = { CARILLON_PORT: port, CARILLON_DATA_DIR: dataDir, CARILLON_URL: `http://127.0.0.1:${port}` }
  const command = `${process.execPath} ${BINARY} up`
  const service = new NpmStart({ cwd: EXAMPLE, env: { ...env, CARILLON_MODULES: './greeting.ts' }, command })
  onTestFinished(async () => {
    await service.kill()
    rmSync(dataDir, { recursive: true, force: true, maxRetries: 20 })
  })
  await service.said('Try this next')
  const carillon = (...args: string[]) =>
    runTool(EXAMPLE, 'env', [
      ...Object.entries(env).map(([name, value]) => `${name}=${value}`),
      process.execPath,
      BINARY,
      ...args,
    ])

  const kinds = await carillon('target-kinds', 'show', 'greeting')
  const target = '{"kind":"greeting","to":"Ada"}'
  const created = await carillon(
    'schedules',
    'create',
    'Hello',
    '--in',
    '1s',
    '--target-json',
    target,
    '--wait',
    '--json',
  )

  expect(kinds.stdout).toContain('An example of a kind')
  expect(JSON.parse(created.stdout)).toMatchObject({
    state: 'succeeded',
    attempts: [{ outcome: 'succeeded', result: { said: 'hello Ada' } }],
  })
  service.signal('SIGTERM', 'group')
  await service.exited
})

test('the test of the module passes: it runs a schedule on an embedded Postgres', async () => {
  const { exitCode, stdout } = await runTool(EXAMPLE, process.execPath, ['--test', '--test-reporter=tap'])

  expect({ exitCode, passed: /^# pass (\d+)$/m.exec(stdout)?.[1] }).toEqual({ exitCode: 0, passed: '3' })
})
