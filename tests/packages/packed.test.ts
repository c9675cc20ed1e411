import { execFile } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { checkPackage, createPackageFromTarballData, type Problem } from '@arethetypeswrong/core'
import { publint } from 'publint'
import { formatMessage } from 'publint/utils'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'

import { installTarballs } from '../../scripts/packages/install.ts'
import { pack } from '../../scripts/packages/pack.ts'
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
    await pack(tarballs)
    await installTarballs(tarballs, app, { env: USER_ENV })
  }, LIMIT_MS)

  afterAll(() => rmSync(folder, { recursive: true, force: true, maxRetries: 20 }))

  test('bring a first schedule to its run by `npx carillon up`, also beside an old `node` of the project', async () => {
    const oldNode = join(app, 'node_modules/node')
    mkdirSync(join(oldNode, 'bin'), { recursive: true })
    writeFileSync(join(oldNode, 'package.json'), JSON.stringify({ name: 'node', version: '18.0.0' }))
    writeFileSync(join(oldNode, 'bin/node'), '#!/bin/sh\nexit 1\n', { mode: 0o755 })
    onTestFinished(() => rmSync(oldNode, { recursive: true }))
    const port = String(await findFreePort())
    const env = { ...USER_ENV, CARILLON_PORT: port, CARILLON_URL: `http://127.0.0.1:${port}` }
    const service = new NpmStart({ cwd: app, env, isWholeEnv: true, command: 'npx carillon up' })
    onTestFinished(() => service.kill())
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
    onTestFinished(() => void server.close())
    await new Promise((resolve) => server.once('listening', resolve))
    copyFileSync(join(REPOSITORY, 'tests/packages/app.ts'), join(app, 'app.ts'))

    const types = await typesOf('app.ts')
    const started = await runTool(app, 'node', [
      'app.ts',
      `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    ])

    expect(types).toBe('')
    expect(started).toMatchObject({ exitCode: 0, stdout: 'succeeded\n', stderr: '' })
    const text = readFileSync(join(REPOSITORY, 'tests/packages/app.ts'), 'utf8')
    expect(text.split('\n').filter((line) => line !== '' && !line.startsWith('//')).length).toBeLessThanOrEqual(20)
  })

  test('have entries that can all be imported, with types that are right without skipLibCheck', async () => {
    const entries = readdirSync(join(app, 'node_modules/@carillon'))
      .map((name) => `@carillon/${name}`)
      .concat('carillon')
      .flatMap((name) =>
        Object.keys((readManifest(join(app, 'node_modules', name)) as { exports: object }).exports)
          .filter((entry) => entry !== './package.json')
          .map((entry) => join(name, entry)),
      )
    const lines = entries.map((entry, index) => `import * as entry${index} from '${entry}'`)
    const used = `for (const entry of [${entries.map((_, index) => `entry${index}`).join(', ')}]) console.log(Object.keys(entry).length > 0)`
    writeFileSync(join(app, 'entries.ts'), [...lines, used, ''].join('\n'))

    expect(entries).toHaveLength(8)
    expect(await typesOf('entries.ts')).toBe('')
    const { stdout } = await runTool(app, 'node', ['entries.ts'])
    expect(stdout).toBe('true\n'.repeat(entries.length))
  })

  test('are packed as publint and attw expect it', async () => {
    const names = readdirSync(tarballs)
    expect(names).toHaveLength(7)
    for (const name of names) {
      const tarball = new Uint8Array(readFileSync(join(tarballs, name)))
      const { messages, pkg } = await publint({ pack: { tarball: tarball.buffer }, strict: true })
      expect(messages.map((message) => formatMessage(message, pkg))).toEqual([])
      const result = await checkPackage(createPackageFromTarballData(tarball))
      const problems = result.types === false ? ['no types'] : result.problems.filter(isUnexpected)
      expect(problems, name).toEqual([])
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

  // Other systems bring another Node and Postgres. The numbers of today are in docs/decisions/0013-packages.md.
  test.runIf(process.platform === 'linux' && process.arch === 'x64')(
    'take at most 310 MB of disk with Node and Postgres, and 60 MB without',
    async () => {
      const bare = join(folder, 'bare')
      await installTarballs(tarballs, bare, { env: USER_ENV, isBare: true })

      expect(await megabytesOf(app)).toBeLessThanOrEqual(310)
      expect(await megabytesOf(bare)).toBeLessThanOrEqual(60)
    },
  )

  /** What the compiler says about a file of the application, checking the types of its libraries too. */
  async function typesOf(file: string): Promise<string> {
    const compilerOptions = {
      strict: true,
      module: 'nodenext',
      target: 'esnext',
      noEmit: true,
      skipLibCheck: false,
      types: ['node'],
    }
    writeFileSync(join(app, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: [file] }))
    return (await runTool(app, 'tsc', ['--project', app])).stdout
  }
})

/** The packages are ES modules only: `require` of them works from Node 22 on, and the resolution of Node 10 knows no `exports`. */
function isUnexpected(problem: Problem): boolean {
  return (
    problem.kind !== 'CJSResolvesToESM' && !(problem.kind === 'NoResolution' && problem.resolutionKind === 'node10')
  )
}

function readManifest(folder: string): unknown {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
}

async function megabytesOf(app: string): Promise<number> {
  const { stdout } = await promisify(execFile)('du', ['-sm', join(app, 'node_modules')])
  return Number(stdout.split('\t')[0])
}
