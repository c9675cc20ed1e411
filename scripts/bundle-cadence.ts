import { measureBrowserBundle } from './browser-bundle.ts'

const { minifiedBytes, gzipBytes } = await measureBrowserBundle('packages/cadence/src/index.ts')
const kilobytes = (bytes: number): string => `${(bytes / 1000).toFixed(1)} kB`
process.stdout.write(`cadence for browsers: ${kilobytes(minifiedBytes)} minified, ${kilobytes(gzipBytes)} gzip\n`)
