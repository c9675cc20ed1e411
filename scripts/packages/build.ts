import { execFile } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import { promisify } from 'node:util'

import { bundledIn, bundleLibraries } from './bundled.ts'
import {
  BUILD,
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

/** The file by which a build recognizes the folder of an earlier build. */
const MARKER = '.carillon-build'

/**
 * Creates the folder of a build, or takes over that of an earlier build, whose packages are then replaced.
 * @throws if it holds anything else: a build into `packages` would replace the sources
 */
export function takeFolder(folder: string, repository = REPOSITORY): void {
  const isThere = existsSync(folder)
  const path = isThere ? realpathSync(folder) : resolve(folder)
  const inRepository = relative(realpathSync(repository), path)
  const isInside = inRepository.split(sep)[0] !== '..' && !isAbsolute(inRepository)
  if (isInside && inRepository !== relative(REPOSITORY, BUILD)) {
    throw new Error(`expected a folder outside of ${repository}, or its folder build, got ${folder}`)
  }
  if (isThere && readdirSync(path).length > 0 && !existsSync(join(path, MARKER))) {
    throw new Error(`expected an empty folder, or that of an earlier build (with a file ${MARKER}), got ${folder}`)
  }
  mkdirSync(path, { recursive: true })
  writeFileSync(join(path, MARKER), 'npm run build replaces the packages in this folder.\n')
}

/** Builds all packages into a folder, each in a folder of its own that is replaced. Other files are left alone. */
export async function build(folder: string): Promise<readonly Built[]> {
  takeFolder(folder)
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
      packages.push({ name: basename(target), folder: target, seconds: (performance.now() - startedAt) / 1000 })
    }
  } finally {
    rmSync(libraries)
  }
  return packages
}

async function buildPackage(published: PublishedPackage, target: string): Promise<void> {
  await compile(published, target)
  rewriteTypeImports(target)
  rewriteSourceMaps(published, target)
  await bundleLibraries(published, target)
  copyAssets(published, target)
  copyCommand(published, target)
  writeFileSync(
    join(target, 'package.json'),
    `${JSON.stringify(publishedManifest(published, bundledIn(published)), null, 2)}\n`,
  )
  cpSync(join(REPOSITORY, 'LICENSE'), join(target, 'LICENSE'))
  const readme = readFileSync(join(REPOSITORY, published.folder, 'README.md'), 'utf8')
  writeFileSync(join(target, 'README.md'), withoutOutsideLinks(readme, target))
}

async function compile({ folder }: PublishedPackage, target: string): Promise<void> {
  const source = join(REPOSITORY, folder)
  const config = join(target, 'tsconfig.json')
  mkdirSync(target, { recursive: true })
  const compilerOptions = {
    noEmit: false,
    rootDir: join(source, 'src'),
    outDir: join(target, 'dist'),
    declaration: true,
    sourceMap: true,
    // A debugger shows the sources from the maps: the package does not contain them otherwise.
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
    throw new Error(`${folder} does not compile:\n${(error as { stdout?: string }).stdout}`, { cause: error })
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

/** The compiler writes paths from the folder of the build to the sources on this machine. In the package they lead to `src/`. */
function rewriteSourceMaps({ folder }: PublishedPackage, target: string): void {
  const dist = join(target, 'dist')
  for (const name of readdirSync(dist, { recursive: true, encoding: 'utf8' })) {
    if (!name.endsWith('.map')) continue
    const file = join(dist, name)
    const map = JSON.parse(readFileSync(file, 'utf8')) as { sources: readonly string[] }
    const sources = map.sources.map((source) => {
      const path = relative(join(REPOSITORY, folder), resolve(dirname(file), source))
      return relative(dirname(file), join(target, path)).replaceAll(sep, '/')
    })
    writeFileSync(file, JSON.stringify({ ...map, sources }))
  }
}

/** A page in which each link to a file that the package does not contain is only its text. */
function withoutOutsideLinks(page: string, target: string): string {
  return page.replaceAll(/\[([^\]]+)\]\(([^)\s]+)\)/g, (link: string, text: string, to: string) => {
    if (/^(?:#|[a-z]+:)/.test(to)) return link
    const file = join(target, to.split('#')[0] ?? '')
    return file.startsWith(target + sep) && existsSync(file) ? link : text
  })
}

function copyAssets({ folder }: PublishedPackage, target: string): void {
  const source = join(REPOSITORY, folder, 'src')
  for (const entry of readdirSync(source, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || !ASSET.test(entry.name)) continue
    const file = join(entry.parentPath, entry.name)
    cpSync(file, join(target, 'dist', relative(source, file)))
  }
}

/** The command's own file is plain JavaScript. In the workspace it starts the sources, in the package what was compiled from them. */
function copyCommand({ folder, manifest }: PublishedPackage, target: string): void {
  for (const file of Object.values(manifest.bin ?? {})) {
    const text = readFileSync(join(REPOSITORY, folder, file), 'utf8')
    const built = text.replaceAll('../src/main.ts', '../dist/main.js')
    if (built === text) throw new Error(`expected ${file} to start ../src/main.ts, got a text that does not name it`)
    const command = join(target, file)
    mkdirSync(dirname(command), { recursive: true })
    writeFileSync(command, built)
    chmodSync(command, 0o755)
  }
}
