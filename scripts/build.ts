/**
 * Builds the packages that people install, in `build/`: JavaScript, types and source maps. In the workspace the sources run without a
 * build, but Node strips no types from files in `node_modules`. Run: npm run build
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'

import { bundledIn, bundleLibraries } from './packages/bundled.ts'
import {
  BUILD,
  builtFolder,
  builtPaths,
  publishedManifest,
  publishedPackages,
  REPOSITORY,
  type PublishedPackage,
} from './packages/published.ts'

/** Files beside the sources that the compiled code reads at run time. */
const ASSET = /\.(?:sql|css|html)$/

function compile(published: PublishedPackage): void {
  const source = join(REPOSITORY, 'packages', published.folder)
  const target = builtFolder(published)
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
    paths: builtPaths(),
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
  const { status } = spawnSync(process.execPath, [tsc, '--project', config], { stdio: 'inherit' })
  if (status !== 0) throw new Error(`packages/${published.folder} does not compile`)
  rmSync(config)
}

/** The compiler writes `./run.js` into code, but keeps `./run.ts` in types, which only some tools resolve. */
function rewriteTypeImports(published: PublishedPackage): void {
  const target = join(builtFolder(published), 'dist')
  for (const name of readdirSync(target, { recursive: true, encoding: 'utf8' })) {
    if (!name.endsWith('.d.ts')) continue
    const file = join(target, name)
    writeFileSync(
      file,
      readFileSync(file, 'utf8').replaceAll(/((?:from |import\()["']\.{1,2}\/[^"']+)\.ts(?=["'])/g, '$1.js'),
    )
  }
}

function copyAssets(published: PublishedPackage): void {
  const source = join(REPOSITORY, 'packages', published.folder, 'src')
  const target = join(builtFolder(published), 'dist')
  for (const entry of readdirSync(source, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || !ASSET.test(entry.name)) continue
    const file = join(entry.parentPath, entry.name)
    cpSync(file, join(target, relative(source, file)))
  }
}

/** The command's own file is plain JavaScript. In the workspace it starts the sources, in the package what was compiled from them. */
function copyCommand(published: PublishedPackage): void {
  for (const file of Object.values(published.manifest.bin ?? {})) {
    const text = readFileSync(join(REPOSITORY, 'packages', published.folder, file), 'utf8')
    const built = text.replaceAll('../src/main.ts', '../dist/main.js')
    if (built === text) throw new Error(`expected ${file} to start ../src/main.ts, got a text that does not name it`)
    const target = join(builtFolder(published), file)
    mkdirSync(join(target, '..'), { recursive: true })
    writeFileSync(target, built)
    chmodSync(target, 0o755)
  }
}

async function build(published: PublishedPackage): Promise<void> {
  const target = builtFolder(published)
  compile(published)
  rewriteTypeImports(published)
  await bundleLibraries(published)
  copyAssets(published)
  copyCommand(published)
  writeFileSync(
    join(target, 'package.json'),
    `${JSON.stringify(publishedManifest(published, bundledIn(published)), null, 2)}\n`,
  )
  cpSync(join(REPOSITORY, 'packages', published.folder, 'README.md'), join(target, 'README.md'))
  cpSync(join(REPOSITORY, 'LICENSE'), join(target, 'LICENSE'))
}

rmSync(BUILD, { recursive: true, force: true })
for (const published of publishedPackages()) {
  const startedAt = performance.now()
  await build(published)
  const size = execFileSync('du', ['-sk', builtFolder(published)], { encoding: 'utf8' }).split('\t')[0]
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
  process.stdout.write(`${published.folder.padEnd(9)} ${String(size).padStart(5)} kB  ${seconds} s\n`)
}
