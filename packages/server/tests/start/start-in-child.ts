import { readSettings, startEverything } from '../../src/index.ts'

/** Starts everything by the settings of its environment and tells where it is; stops it when its input ends. */
const service = await startEverything(readSettings(process.env))
process.stdout.write(`${service.url}\n`)
process.stdin.resume().on('end', () => void service.stop())
