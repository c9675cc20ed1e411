export type { Cli } from './cli.ts'
export { systemClock } from './clock.ts'
export { runCli } from './run-cli.ts'
