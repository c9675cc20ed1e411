import { execFile } from 'node:child_process'
import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { promisify } from 'node:util'

import { bundledIn, bundleLibraries } from './bundled.ts'
import {
  builtFolder,
  builtPaths,
  publishedManifest,
  publishedPackages,
  REPOSITORY,
  type PublishedPackage,
} from './published.ts'

interface Built {
  readonly name: string
  readonly folder: string
  readonly seconds: number
}

/** Files beside the sources that the compiled code reads at run time. */
const ASSET = /\.(?:sql|css|html)$/

/** Builds all packages into a folder, each in a folder of its own that is replaced. Other files are left alone. */
export async function build(folder: string): Promise<readonly Built[]> {
  mkdirSync(folder, { recursive: true })
  // The types of a built package name libraries. The compiler looks for them above the folder, which may lie anywhere.
  const libraries = join(folder, 'node_modules')
  rmSync(libraries, { force: true })
  symlinkSync(join(REPOSITORY, 'node_modules'), libraries, 'junction')
  const packages: Built[] = []
  try {
    for (const published of publishedPackages()) {
      const startedAt = performance.now()
      const target = builtFolder(folder, published)
      rmSync(target, { recursive: true, force: true })
      await buildPackage(published, target)
      packages.push({ name: published.folder, folder: target, seconds: (performance.now() - startedAt) / 1000 })
    }
  } finally {
    rmSync(libraries)
  }
  return packages
}

async function buildPackage(published: PublishedPackage, target: string): Promise<void> {
  await compile(published, target)
  rewriteTypeImports(target)
  await bundleLibraries(published, target)
  copyAssets(published, target)
  copyCommand(published, target)
  writeFileSync(
    join(target, 'package.json'),
    `${JSON.stringify(publishedManifest(published, bundledIn(published)), null, 2)}\n`,
  )
  cpSync(join(REPOSITORY, 'packages', published.folder, 'README.md'), join(target, 'README.md'))
  cpSync(join(REPOSITORY, 'LICENSE'), join(target, 'LICENSE'))
}

async function compile({ folder }: PublishedPackage, target: string): Promise<void> {
  const source = join(REPOSITORY, 'packages', folder)
  const config = join(target, 'tsconfig.json')
  mkdirSync(target, { recursive: true })
  const compilerOptions = {
    noEmit: false,
    rootDir: join(source, 'src'),
    outDir: join(target, 'dist'),
    declaration: true,
    sourceMap: true,
    inlineSources: true,
    rewriteRelativeImportExtensions: true,
    paths: builtPaths(dirname(target)),
    typeRoots: [join(REPOSITORY, 'node_modules/@types')],
  }
  writeFileSync(
    config,
    JSON.stringify({
      extends: join(source, 'tsconfig.src.json'),
      compilerOptions,
      include: [join(source, 'src')],
      exclude: [join(source, 'src/**/*.test.ts')],
    }),
  )
  const tsc = join(REPOSITORY, 'node_modules/typescript/bin/tsc')
  try {
    await promisify(execFile)(process.execPath, [tsc, '--project', config])
  } catch (error) {
    throw new Error(`packages/${folder} does not compile:\n${(error as { stdout?: string }).stdout}`, { cause: error })
  }
  rmSync(config)
}

/** The compiler writes `./run.js` into code, but keeps `./run.ts` in types, which only some tools resolve. */
function rewriteTypeImports(target: string): void {
  const dist = join(target, 'dist')
  for (const name of readdirSync(dist, { recursive: true, encoding: 'utf8' })) {
    if (!name.endsWith('.d.ts')) continue
    const file = join(dist, name)
    writeFileSync(
      file,
      readFileSync(file, 'utf8').replaceAll(/((?:from |import\()["']\.{1,2}\/[^"']+)\.ts(?=["'])/g, '$1.js'),
    )
  }
}

function copyAssets({ folder }: PublishedPackage, target: string): void {
  const source = join(REPOSITORY, 'packages', folder, 'src')
  for (const entry of readdirSync(source, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || !ASSET.test(entry.name)) continue
    const file = join(entry.parentPath, entry.name)
    cpSync(file, join(target, 'dist', relative(source, file)))
  }
}

/** The command's own file is plain JavaScript. In the workspace it starts the sources, in the package what was compiled from them. */
function copyCommand({ folder, manifest }: PublishedPackage, target: string): void {
  for (const file of Object.values(manifest.bin ?? {})) {
    const text = readFileSync(join(REPOSITORY, 'packages', folder, file), 'utf8')
    const built = text.replaceAll('../src/main.ts', '../dist/main.js')
    if (built === text) throw new Error(`expected ${file} to start ../src/main.ts, got a text that does not name it`)
    const command = join(target, file)
    mkdirSync(dirname(command), { recursive: true })
    writeFileSync(command, built)
    chmodSync(command, 0o755)
  }
}
