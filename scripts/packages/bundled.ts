import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { dirname, join, relative } from 'node:path'

import { rolldown } from 'rolldown'

import { REPOSITORY, type PublishedPackage } from './published.ts'

/**
 * Libraries that are bundled into a package instead of installed beside it, because they bring much more than Carillon uses.
 * `@opentelemetry/api` is never bundled: an application shares it with Carillon.
 */
const BUNDLED: Readonly<Record<string, readonly string[]>> = {
  'packages/server': [
    '@opentelemetry/exporter-prometheus',
    '@opentelemetry/sdk-metrics',
    '@scalar/fastify-api-reference',
  ],
}

export function bundledIn({ folder }: PublishedPackage): readonly string[] {
  return BUNDLED[folder] ?? []
}

/** Bundles the libraries of a package that was compiled into `target`, with their licences, and makes its code import the bundles. */
export async function bundleLibraries(published: PublishedPackage, target: string): Promise<void> {
  const libraries = bundledIn(published)
  if (libraries.length === 0) return
  const dist = join(target, 'dist')
  const folder = join(dist, 'bundled')
  await using bundle = await rolldown({
    input: Object.fromEntries(libraries.map((name) => [fileOf(name), name])),
    cwd: join(REPOSITORY, published.folder),
    platform: 'node',
    external: (id) => isBuiltin(id) || id === '@opentelemetry/api',
    logLevel: 'warn',
  })
  const { output } = await bundle.write({
    dir: folder,
    format: 'esm',
    entryFileNames: '[name].js',
    chunkFileNames: '[name]-[hash].js',
  })
  const modules = output.flatMap((part) => (part.type === 'chunk' ? part.moduleIds : []))
  writeFileSync(join(folder, 'LICENSES.txt'), licencesOf(modules))
  for (const name of readdirSync(dist, { recursive: true, encoding: 'utf8' })) {
    const file = join(dist, name)
    if (name.startsWith('bundled') || !/\.(?:js|d\.ts)$/.test(name)) continue
    const text = readFileSync(file, 'utf8')
    const imported = libraries.filter((library) => text.includes(`from '${library}'`))
    if (imported.length === 0) continue
    if (name.endsWith('.d.ts')) {
      throw new Error(`${name} publishes a type of ${imported.join(', ')}, which is bundled without types`)
    }
    writeFileSync(
      file,
      imported.reduce((code, library) => importBundle(code, library, relative(dirname(file), folder)), text),
    )
  }
}

function importBundle(code: string, library: string, folder: string): string {
  const path = join(folder, `${fileOf(library)}.js`)
  return code.replaceAll(`from '${library}'`, `from '${path.startsWith('.') ? path : `./${path}`}'`)
}

function fileOf(library: string): string {
  return library.replace('@', '').replace('/', '-')
}

/** The licence of each package that a bundle contains. @throws if one has none: it may not be passed on */
function licencesOf(modules: readonly string[]): string {
  const folders = [...new Set(modules.map((id) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id)?.[0] ?? ''))].filter(
    Boolean,
  )
  return folders
    .toSorted()
    .map((folder) => {
      const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Record<
        string,
        string
      >
      const file = ['LICENSE', 'LICENSE.md', 'license', 'LICENCE']
        .map((each) => join(folder, each))
        .find((each) => existsSync(each))
      if (file === undefined && license === undefined) throw new Error(`${name} names no licence`)
      return `${name} ${version}, ${license}\n\n${file === undefined ? '' : readFileSync(file, 'utf8').trim()}\n`
    })
    .join('\n----\n\n')
}
