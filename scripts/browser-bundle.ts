import { relative } from 'node:path'
import { gzipSync } from 'node:zlib'

import { rolldown, type Plugin } from 'rolldown'

interface BundleSize {
  readonly minifiedBytes: number
  readonly gzipBytes: number
}

/** Bundles `entry` and its imports for a browser, in memory. Throws if an import does not exist in a browser. */
export async function measureBrowserBundle(entry: string): Promise<BundleSize> {
  const missing = new Set<string>()
  await using bundle = await rolldown({
    input: entry,
    platform: 'browser',
    logLevel: 'silent',
    plugins: [collectMissing(missing)],
  })
  const { output } = await bundle.generate({ format: 'esm', minify: true })
  if (missing.size > 0) {
    throw new Error(
      `expected ${entry} to bundle for a browser, got imports that a browser lacks:\n  ${[...missing].join('\n  ')}`,
    )
  }
  const code = output.map((part) => (part.type === 'chunk' ? part.code : '')).join('')
  return { minifiedBytes: Buffer.byteLength(code), gzipBytes: gzipSync(code, { level: 9 }).byteLength }
}

/**
 * Collects every import that resolves to no file: Node's built-in modules and packages that are not installed. It runs
 * while imports are resolved, because tree shaking may drop a forbidden import from the finished bundle.
 */
function collectMissing(missing: Set<string>): Plugin {
  return {
    name: 'collect-missing',
    async resolveId(specifier, importer, { isEntry }) {
      const resolved = await this.resolve(specifier, importer, { isEntry, skipSelf: true })
      if (!resolved || resolved.external !== false) {
        missing.add(`${specifier}, imported by ${relative(process.cwd(), importer ?? '')}`)
      }
      return resolved
    },
  }
}
