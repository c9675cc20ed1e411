import { spawnSync } from 'node:child_process'

/** The npm scripts that make up `npm run check`, cheapest first. */
const STEPS = ['format:check', 'lint', 'types', 'boundaries', 'unused', 'bundle:cadence']

for (const step of STEPS) {
  process.stdout.write(`\n── ${step}\n`)
  const startedAt = performance.now()
  const { status } = spawnSync(`npm run --silent ${step}`, { shell: true, stdio: 'inherit' })
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
  process.stdout.write(`${status === 0 ? '✓' : '✗'} ${step} ${seconds} s\n`)
  if (status !== 0) process.exit(1)
}
