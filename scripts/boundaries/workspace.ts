import { globSync, readFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { join, posix } from 'node:path'

import { parseSync, type Node, type Program } from 'oxc-parser'

import { textOf, walk } from './syntax-walk.ts'

/** A folder with a package.json: one of `packages/*` or `modules/*`, or the repository itself. */
interface Package {
  /** The folder's name under `packages/` or `modules/`; empty for the repository itself. */
  readonly id: string
  /** From the root, such as `packages/core`. */
  readonly folder: string
  readonly name: string
  readonly dependencies: ReadonlySet<string>
  readonly devDependencies: ReadonlySet<string>
  /** Maps each public subpath (`.`, `./testing`) to its file, as a path from the root. */
  readonly exports: ReadonlyMap<string, string>
}

export interface Import {
  readonly specifier: string
  readonly line: number
  /** The imported file, as a path from the root; undefined if it is not a file of this repository. */
  readonly target: string | undefined
}

export interface SourceFile {
  readonly path: string
  readonly package: Package
  /** True for tests, benches, scripts and settings, which rules for the code of the product skip. */
  readonly isTest: boolean
  readonly imports: readonly Import[]
  readonly program: Program
  readonly syntaxErrors: readonly string[]
  readonly lineCount: number
  lineAt(offset: number): number
}

export interface Workspace {
  readonly packages: ReadonlyMap<string, Package>
  readonly files: ReadonlyMap<string, SourceFile>
}

const SOURCES = ['*.ts', '{scripts,tests}/**/*.ts', '{packages,modules}/*/**/*.{ts,tsx,mts,cts}']
/** Tests, benches, and settings that lie directly in the package's folder. All other files are the product. */
const TESTS = /^(?:packages|modules)\/[^/]+\/((tests|bench)\/|[^/]+$)|\.test\.tsx?$/

export function readWorkspace(root: string): Workspace {
  const manifests = ['package.json', ...list(root, ['{packages,modules}/*/package.json'])]
  const packages = new Map(manifests.map((manifest) => readPackage(root, manifest)).map((pkg) => [pkg.id, pkg]))
  const paths = list(root, SOURCES)
  const known = new Set(paths)
  const files = new Map<string, SourceFile>()
  for (const path of paths) {
    const owner = packages.get(packageIdOf(path))
    if (owner) files.set(path, readSourceFile({ root, path, owner, packages, known }))
  }
  return { packages, files }
}

/** `@scope/name/sub/path` to `@scope/name`; undefined for relative paths and Node's own modules. */
export function npmNameOf(specifier: string): string | undefined {
  if (/^[./#]/.test(specifier) || isBuiltin(specifier)) return undefined
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')
}

/** `packages/core/src/store/runs.ts` to `core`, `modules/http/src/target.ts` to `http`; empty for files of the repository itself. */
export function packageIdOf(path: string): string {
  const [top, id] = path.split('/')
  return (top === 'packages' || top === 'modules') && id !== undefined ? id : ''
}

function list(root: string, patterns: readonly string[]): string[] {
  return globSync(patterns, { cwd: root, exclude: ['**/node_modules'] })
    .map((path) => path.replaceAll('\\', '/'))
    .toSorted()
}

function readPackage(root: string, manifestPath: string): Package {
  const manifest = JSON.parse(readFileSync(join(root, manifestPath), 'utf8')) as Record<string, unknown>
  const folder = posix.dirname(manifestPath)
  const keysOf = (field: string): string[] => Object.keys(manifest[field] ?? {})
  return {
    id: packageIdOf(manifestPath),
    folder,
    name: String(manifest['name']),
    dependencies: new Set([...keysOf('dependencies'), ...keysOf('peerDependencies')]),
    devDependencies: new Set(keysOf('devDependencies')),
    exports: new Map(
      Object.entries(manifest['exports'] ?? {}).map(([subpath, file]) => [subpath, posix.join(folder, String(file))]),
    ),
  }
}

interface ReadContext {
  readonly root: string
  readonly path: string
  readonly owner: Package
  readonly packages: ReadonlyMap<string, Package>
  readonly known: ReadonlySet<string>
}

function readSourceFile(context: ReadContext): SourceFile {
  const { root, path, owner } = context
  const text = readFileSync(join(root, path), 'utf8')
  const { program, errors } = parseSync(path, text)
  const lineAt = (offset: number): number => text.slice(0, offset).split('\n').length
  return {
    path,
    package: owner,
    isTest: owner.id === '' || TESTS.test(path),
    imports: importNodesOf(program).map(({ specifier, start }) => ({
      specifier,
      line: lineAt(start),
      target: resolve(specifier, context),
    })),
    program,
    syntaxErrors: errors.map((error) => error.message),
    lineCount: text.split('\n').length - (text.endsWith('\n') ? 1 : 0),
    lineAt,
  }
}

/** Every way to name another module: import, export from, `import()`, and `import('…')` in a type. */
function importNodesOf(program: Program): { specifier: string; start: number }[] {
  const found: { specifier: string; start: number }[] = []
  walk(program, (node) => {
    const source = sourceOf(node)
    if (!source) return
    const specifier = textOf(source)
    if (specifier !== undefined) found.push({ specifier, start: source.start })
  })
  return found
}

function sourceOf(node: Node): Node | null | undefined {
  switch (node.type) {
    case 'ImportDeclaration':
    case 'ExportNamedDeclaration':
    case 'ExportAllDeclaration':
    case 'ImportExpression':
    case 'TSImportType':
      return node.source
    default:
      return undefined
  }
}

function resolve(specifier: string, { path, packages, known }: ReadContext): string | undefined {
  if (specifier.startsWith('.')) {
    const target = posix.join(posix.dirname(path), specifier)
    return known.has(target) ? target : undefined
  }
  const name = npmNameOf(specifier)
  const owner = packages.values().find((pkg) => pkg.name === name)
  return name === undefined ? undefined : owner?.exports.get(`.${specifier.slice(name.length)}`)
}
