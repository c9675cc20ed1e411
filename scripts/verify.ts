import { spawnSync } from 'node:child_process'

/** The npm scripts that make up `npm run verify`, cheapest first. The tests come last, so that their count is too. */
const STEPS = ['format:check', 'lint', 'types', 'boundaries', 'unused', 'bundle:cadence', 'test']

const finished: string[] = []
for (const step of STEPS) {
  if (step === STEPS.at(-1)) process.stdout.write(`\n${finished.join('\n')}\n`)
  process.stdout.write(`\n── ${step}\n`)
  const startedAt = performance.now()
  const { status } = spawnSync(`npm run --silent ${step}`, { shell: true, stdio: 'inherit' })
  if (status !== 0) {
    process.stdout.write(`\n✗ ${step} failed\n`)
    process.exit(1)
  }
  finished.push(`✓ ${step} ${((performance.now() - startedAt) / 1000).toFixed(1)} s`)
}
