import type { Reporter, SerializedError, TestModule } from 'vitest/node'

interface Counts {
  passed: number
  failed: number
  skipped: number
}

/**
 * Prints `N passed, N failed` alone on the last line, for people and for CI, and fails a run in which no test ran.
 * A file that does not load and an error outside any test each count as one failure, so that the line never looks
 * green when the run is red.
 */
export default class CountReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly SerializedError[]): void {
    const counts = countTests(modules)
    counts.failed += unhandledErrors.length
    process.stdout.write(`${formatCounts(counts)}\n`)
    if (counts.passed + counts.failed === 0) process.exitCode = 1
  }
}

function countTests(modules: readonly TestModule[]): Counts {
  const counts: Counts = { passed: 0, failed: 0, skipped: 0 }
  for (const module of modules) {
    counts.failed += module.errors().length
    for (const suite of module.children.allSuites()) counts.failed += suite.errors().length
    for (const test of module.children.allTests()) {
      const { state } = test.result()
      counts[state === 'pending' ? 'skipped' : state] += 1
    }
  }
  return counts
}

function formatCounts({ passed, failed, skipped }: Counts): string {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`
}
