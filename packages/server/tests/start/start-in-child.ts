import { readSettings, startEverything } from '../../src/index.ts'

/** Starts everything with the settings of its environment, prints its URL, and stops when its standard input ends. */
const service = await startEverything(readSettings(process.env))
process.stdout.write(`${service.url}\n`)
process.stdin.resume().on('end', () => void service.stop())
