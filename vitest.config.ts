import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['packages/*/{src,tests}/**/*.test.{ts,tsx}', 'tests/**/*.test.ts'],
    globalSetup: ['./tests/database/global-setup.ts'],
    reporters: ['default', './scripts/count-reporter.ts'],
    // Some tests start real tools, several processes each; beside the others on two cores that takes seconds.
    testTimeout: 30_000,
    // Left to itself, vitest keeps one of two cores free.
    maxWorkers: 2,
  },
})
