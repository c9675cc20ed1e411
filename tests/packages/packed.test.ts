import { execFile } from 'node:child_process'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
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
const NO_ERRORS = { exitCode: 0, stdout: '' }

/** A module of a user. Its types are stripped, so it also shows that Node loads TypeScript here. */
const SHOUT_MODULE = `
import { MODULE_PORT, type ModuleManifest, type ModuleParts } from '@carillon/core'
import { z } from 'zod'

const create = (): ModuleParts => ({
  targets: [],
  handlers: { readLoudness: () => Promise.resolve({ body: { loudness: 11 } }) },
  checks: [{ name: 'loudness', look: () => Promise.resolve({ findings: [], next: null }) }],
})

export const module = {
  port: MODULE_PORT,
  name: 'shout',
  version: '1.0.0',
  operations: {
    readLoudness: {
      method: 'get',
      path: '/loudness',
      tag: 'shout',
      summary: 'Read how loud it is',
      role: 'member',
      success: { status: 200, description: 'How loud it is.', schema: z.object({ loudness: z.int() }) },
      problems: [],
    },
  },
  load: () => Promise.resolve({ create }),
} satisfies ModuleManifest
`

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
    const modules = { CARILLON_MODULES: './shout-module.ts' }
    const env = { ...USER_ENV, ...modules, CARILLON_PORT: port, CARILLON_URL: `http://127.0.0.1:${port}` }
    writeFileSync(join(app, 'shout-module.ts'), SHOUT_MODULE)
    const service = new NpmStart({ cwd: app, env, isWholeEnv: true, command: 'npx carillon up' })
    onTestFinished(() => service.kill())
    await service.said('Try this next')

    const create = `npx carillon schedules create Light --in 1s --url ${env.CARILLON_URL}/healthz --method GET --wait`
    const line = await run(create, env)
    const doctor = await run('npx carillon doctor', env)
    const document = await (await fetch(`${env.CARILLON_URL}/openapi.json`)).text()

    expect(line).toContain('succeeded')
    // These two come from libraries that are bundled.
    expect(await (await fetch(`${env.CARILLON_URL}/docs`)).text()).toContain('<!doctype html>')
    expect(await (await fetch(`${env.CARILLON_URL}/metrics`)).text()).toContain('scheduler_')
    expect(doctor).not.toMatch(/^(?:failed|warning)/m)
    // A module in TypeScript, in the project that has installed Carillon.
    expect(doctor).toContain('module shout: loudness: nothing found')
    expect(document).toContain('Read how loud it is')
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

    expect(types).toEqual(NO_ERRORS)
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

    expect(entries).toHaveLength(10)
    expect(await typesOf('entries.ts')).toEqual(NO_ERRORS)
    const { stdout } = await runTool(app, 'node', ['entries.ts'])
    expect(stdout).toBe('true\n'.repeat(entries.length))
  })

  test('are packed as publint and attw expect it', async () => {
    const names = readdirSync(tarballs)
    expect(names).toHaveLength(8)
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
    const names = namesOfTestsOnly()
    expect(names).toEqual(expect.arrayContaining(['vitest', 'typescript', 'fast-check', '@restatedev/restate-sdk']))
    const ofLibraries = namesOfLibraries(app)
    const unneeded = names.filter((name) => existsSync(join(app, 'node_modules', name)) && !ofLibraries.has(name))
    expect(unneeded).toEqual([])
  })

  test('name no file outside of the package, neither in a source map nor in a link of the README', () => {
    const folders = publishedFolders()
    const leaving = folders.flatMap((each) =>
      [...linksOf(each), ...sourcesOf(each)].filter((path) => !path.startsWith(each)),
    )
    const broken = folders.flatMap((each) => linksOf(each).filter((path) => !existsSync(path)))
    const sources = folders.flatMap(sourcesOf)

    expect(sources.length).toBeGreaterThan(300)
    expect(sources.filter((path) => !/\/(?:@carillon\/\w+|carillon)\/src\/[\w/.-]+\.ts$/.test(path))).toEqual([])
    expect(leaving).toEqual([])
    expect(broken).toEqual([])
  })

  /** The folders of Carillon's packages in the application. */
  function publishedFolders(): readonly string[] {
    const modules = join(app, 'node_modules')
    return [
      join(modules, 'carillon'),
      ...readdirSync(join(modules, '@carillon')).map((name) => join(modules, '@carillon', name)),
    ]
  }

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
  async function typesOf(file: string): Promise<object> {
    const compilerOptions = {
      strict: true,
      module: 'nodenext',
      target: 'esnext',
      noEmit: true,
      skipLibCheck: false,
      types: ['node'],
    }
    writeFileSync(join(app, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: [file] }))
    const { exitCode, stdout } = await runTool(app, 'tsc', ['--project', app])
    return { exitCode, stdout }
  }
})

/** The packages are ES modules only: `require` of them works from Node 22 on, and the resolution of Node 10 knows no `exports`. */
function isUnexpected(problem: Problem): boolean {
  return (
    problem.kind !== 'CJSResolvesToESM' && !(problem.kind === 'NoResolution' && problem.resolutionKind === 'node10')
  )
}

/** The files that a package's README links to. */
function linksOf(folder: string): readonly string[] {
  const page = readFileSync(join(folder, 'README.md'), 'utf8')
  return [...page.matchAll(/\]\(([^)\s#]+)[^)]*\)/g)]
    .map(([, to = '']) => to)
    .filter((to) => !/^[a-z]+:/.test(to))
    .map((to) => resolve(folder, to))
}

/** The files that the source maps of a package name. */
function sourcesOf(folder: string): readonly string[] {
  const dist = join(folder, 'dist')
  return readdirSync(dist, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.map'))
    .map((name) => join(dist, name))
    .flatMap((file) =>
      (JSON.parse(readFileSync(file, 'utf8')) as { sources: readonly string[] }).sources.map((source) =>
        resolve(dirname(file), source),
      ),
    )
}

/** The packages that a library of others depends on. */
function namesOfLibraries(app: string): ReadonlySet<string> {
  const lock = JSON.parse(readFileSync(join(app, 'node_modules/.package-lock.json'), 'utf8')) as {
    packages: Readonly<Record<string, { readonly dependencies?: object; readonly peerDependencies?: object }>>
  }
  const libraries = Object.entries(lock.packages).filter(
    ([path]) => !/^node_modules\/(?:@carillon\/\w+|carillon)$/.test(path),
  )
  return new Set(
    libraries.flatMap(([, { dependencies, peerDependencies }]) =>
      Object.keys({ ...dependencies, ...peerDependencies }),
    ),
  )
}

/** The packages that a manifest of the workspace names for its tests and tools, and none for its users. */
function namesOfTestsOnly(): readonly string[] {
  type Names = Readonly<Record<string, string>>
  const manifests = ['.', ...readdirSync(join(REPOSITORY, 'packages')).map((name) => join('packages', name))].map(
    (folder) =>
      readManifest(join(REPOSITORY, folder)) as Partial<
        Record<'dependencies' | 'optionalDependencies' | 'devDependencies', Names>
      >,
  )
  const ofUsers = new Set(
    manifests.flatMap(({ dependencies, optionalDependencies }) =>
      Object.keys({ ...dependencies, ...optionalDependencies }),
    ),
  )
  const ofTests = new Set(manifests.flatMap(({ devDependencies }) => Object.keys(devDependencies ?? {})))
  return [...ofTests].filter((name) => !ofUsers.has(name) && !name.startsWith('@carillon/'))
}

function readManifest(folder: string): unknown {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
}

async function megabytesOf(app: string): Promise<number> {
  const { stdout } = await promisify(execFile)('du', ['-sm', join(app, 'node_modules')])
  return Number(stdout.split('\t')[0])
}
