import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

import { describe, expect, test } from 'vitest'

import { REPOSITORY } from './run-tool.ts'

interface Manifest {
  readonly name: string
  readonly version: string
  readonly license: string
  readonly scripts?: Readonly<Record<string, string>>
  readonly allowScripts?: Readonly<Record<string, boolean>>
  readonly dependencies?: Readonly<Record<string, string>>
  readonly devDependencies?: Readonly<Record<string, string>>
}

interface LockedPackage {
  readonly resolved?: string
  readonly hasInstallScript?: boolean
  readonly optionalDependencies?: Readonly<Record<string, string>>
}

function readJson(path: string): unknown {
  return JSON.parse(readFileSync(join(REPOSITORY, path), 'utf8'))
}

const root = readJson('package.json') as Manifest
const folders = globSync('{packages,modules}/*/package.json', { cwd: REPOSITORY }).map(dirname).toSorted()
const manifests = [root, ...folders.map((folder) => readJson(`${folder}/package.json`) as Manifest)]

/** Each lockfile belongs to a package.json: the one that everyone installs, and the one of the tests that need Restate. */
const LOCKFILES = ['package-lock.json', 'tests/restate/package-lock.json']

function readLocked(lockfile: string): Readonly<Record<string, LockedPackage>> {
  return (readJson(lockfile) as { packages: Record<string, LockedPackage> }).packages
}

test("the tests run on the Node that the workspace pins, not on the machine's Node", () => {
  expect(process.versions.node).toBe(root.devDependencies?.['node'])
})

test('every file and folder in a script exists', () => {
  const named = Object.values(root.scripts ?? {}).flatMap((script) =>
    script.split(' ').filter((word) => /^(packages|modules|scripts|tests|examples|bench)\/?/.test(word)),
  )

  expect(named.length).toBeGreaterThan(10)
  expect(named.filter((path) => !existsSync(join(REPOSITORY, path)))).toEqual([])
})

describe('every package', () => {
  test.each(folders)('%s is type-checked, because the root tsconfig refers to it', (folder) => {
    const { references } = readJson('tsconfig.json') as { references: { path: string }[] }

    expect(references).toContainEqual({ path: `./${folder}` })
  })

  test.each(folders)('%s is named after its folder and shares the one version and licence', (folder) => {
    const { name, version, license } = readJson(`${folder}/package.json`) as Manifest

    expect({ folder, version, license }).toEqual({
      folder: name.replace('@carillon/', `${dirname(folder)}/`),
      version: root.version,
      license: root.license,
    })
  })

  test.each(manifests)('$name pins its dependencies exactly', ({ dependencies, devDependencies }) => {
    const versions = Object.values({ ...dependencies, ...devDependencies })

    expect(versions.filter((version) => !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version))).toEqual([])
  })
})

describe.each(LOCKFILES)('%s', (lockfile) => {
  const locked = readLocked(lockfile)
  const { allowScripts = {} } = readJson(lockfile.replace('-lock', '')) as Manifest

  test('names no registry, so that it works with every registry', () => {
    const hosts = Object.values(locked).filter(({ resolved }) => resolved?.includes('://'))

    expect(hosts).toEqual([])
  })

  test('contains the packages of every platform, because `npm ci` fails without them', () => {
    const missing = Object.entries(locked).flatMap(([path, { optionalDependencies }]) =>
      Object.keys(optionalDependencies ?? {}).filter(
        (name) => !(`node_modules/${name}` in locked) && !(`${path}/node_modules/${name}` in locked),
      ),
    )

    expect(missing).toEqual([])
  })

  test("contains no install script without an explicit decision, and only Node's runs", () => {
    const scripted = Object.keys(locked)
      .filter((path) => locked[path]?.hasInstallScript === true)
      .map((path) => path.replace(/^.*node_modules\//, ''))

    expect(scripted.filter((name) => !(name in allowScripts))).toEqual([])
    expect(Object.keys(allowScripts).filter((name) => allowScripts[name] && name !== 'node')).toEqual([])
  })
})
