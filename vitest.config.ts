import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['{packages,modules}/*/{src,tests}/**/*.test.{ts,tsx}', 'tests/**/*.test.ts'],
    // These need a process in which no other test has run: tests/house/walks.test.ts starts it.
    exclude: process.env['WALKS'] === undefined ? ['**/node_modules/**', '**/walk.test.ts'] : ['**/node_modules/**'],
    globalSetup: ['./tests/database/global-setup.ts'],
    setupFiles: ['./tests/clean-process.ts'],
    reporters: ['default', './scripts/count-reporter.ts'],
    // For what hangs. Some tests start several processes each, and a machine may be ten times as busy as this one.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // A process runs one file after another. A new one for each would import Fastify, zod and the rest 250 times.
    isolate: false,
    // More than cores: many tests wait for a lease, a slot or a process.
    maxWorkers: 3,
  },
})
