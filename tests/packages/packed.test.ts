import { execFile } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core'
import { publint } from 'publint'
import { formatMessage } from 'publint/utils'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { REPOSITORY, runTool } from '../house/run-tool.ts'
import { findFreePort, NpmStart } from '../service/npm-start.ts'
import { USER_ENV } from './user-env.ts'

const LIMIT_MS = 300_000
describe('the packages that people install', () => {
  const folder = mkdtempSync(join(tmpdir(), 'carillon-packed-'))
  const [tarballs, app] = [join(folder, 'tarballs'), join(folder, 'app')]

  async function run(command: string, env: NodeJS.ProcessEnv = {}): Promise<string> {
    const { stdout } = await promisify(execFile)('sh', ['-c', command], { cwd: app, env: { ...USER_ENV, ...env } })
    return stdout
  }

  beforeAll(async () => {
    mkdirSync(app)
    const packed = await runTool(REPOSITORY, 'node', ['scripts/pack.ts', '--out', tarballs])
    if (packed.exitCode !== 0) throw new Error(packed.stderr)
    writeFileSync(join(app, 'package.json'), JSON.stringify({ name: 'app', private: true, type: 'module' }))
    await run(`npm install --no-audit --no-fund '${tarballs}'/*.tgz`)
  }, LIMIT_MS)

  afterAll(() => rmSync(folder, { recursive: true, force: true, maxRetries: 20 }))

  test('bring a first schedule to its run by `npx carillon up`', async () => {
    const port = String(await findFreePort())
    const env = { ...USER_ENV, CARILLON_PORT: port, CARILLON_URL: `http://127.0.0.1:${port}` }
    const service = new NpmStart({ cwd: app, env, command: 'npx carillon up' })
    await service.said('Try this next')

    const create = `npx carillon schedules create Light --in 1s --url ${env.CARILLON_URL}/healthz --method GET --wait`
    const line = await run(create, env)
    const doctor = await run('npx carillon doctor', env)

    expect(line).toContain('succeeded')
    // These two come from libraries that are bundled.
    expect(await (await fetch(`${env.CARILLON_URL}/docs`)).text()).toContain('<!doctype html>')
    expect(await (await fetch(`${env.CARILLON_URL}/metrics`)).text()).toContain('scheduler_')
    expect(doctor).not.toMatch(/^(?:failed|warning)/m)
    service.signal('SIGTERM', 'group')
    await service.exited
  })

  test('run inside an application of twenty lines that is type-checked with its libraries', async () => {
    const server = createServer((_request, response) => response.end('done')).listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    copyFileSync(join(REPOSITORY, 'tests/packages/app.ts'), join(app, 'app.ts'))
    const compilerOptions = {
      strict: true,
      module: 'nodenext',
      target: 'esnext',
      noEmit: true,
      skipLibCheck: false,
      types: ['node'],
    }
    writeFileSync(join(app, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['app.ts'] }))

    const types = await runTool(app, 'tsc', ['--project', app])
    const started = await runTool(app, 'node', [
      'app.ts',
      `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    ])
    server.close()

    expect(types.stdout).toBe('')
    expect(started).toMatchObject({ exitCode: 0, stdout: 'succeeded\n', stderr: '' })
    const text = readFileSync(join(REPOSITORY, 'tests/packages/app.ts'), 'utf8')
    expect(text.split('\n').filter((line) => line !== '' && !line.startsWith('//')).length).toBeLessThanOrEqual(24)
  })

  test('are packed as publint and attw expect it', async () => {
    for (const name of readdirSync(join(REPOSITORY, 'build'))) {
      const pkgDir = join(REPOSITORY, 'build', name)
      const manifest = JSON.parse(readFileSync(join(pkgDir, 'package.json'), 'utf8')) as {
        name: string
        version: string
      }
      const { messages } = await publint({ pkgDir, pack: 'npm', strict: true })
      expect(messages.map((message) => formatMessage(message, manifest))).toEqual([])
      const tarball = `${manifest.name.replace('@', '').replace('/', '-')}-${manifest.version}.tgz`
      const result = await checkPackage(createPackageFromTarballData(readFileSync(join(tarballs, tarball))))
      // The packages are ES modules only: `require` of them works from Node 22 on, and the oldest resolution knows no `exports`.
      const problems =
        result.types === false ? ['no types'] : result.problems.filter(({ kind }) => !ONLY_ES_MODULES.has(kind))
      expect(problems, manifest.name).toEqual([])
    }
  })

  test('contain no tests, no sources and nothing that only tests need', async () => {
    const files = readdirSync(join(app, 'node_modules'), { recursive: true, encoding: 'utf8' })
    const own = files.filter(
      (file) => /^(?:@carillon\/\w+|carillon)\//.test(file) && !/^[^/]+\/[^/]+\/node_modules\//.test(file),
    )

    expect(own.length).toBeGreaterThan(500)
    expect(own.filter((file) => /\.test\.|(?:^|\/)(?:tests?|src)\/|(?<!\.d)\.ts$/.test(file))).toEqual([])
    expect(files.filter((file) => /^(?:vitest|typescript|fast-check|@restatedev|kysely)\//.test(file))).toEqual([])
  })
})

const ONLY_ES_MODULES: ReadonlySet<string> = new Set(['CJSResolvesToESM', 'NoResolution'])
