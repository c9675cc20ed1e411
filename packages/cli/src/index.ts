export type { Cli } from './process/cli.ts'
export { systemClock } from './process/clock.ts'
export { runCli } from './run-cli.ts'
