import { startPostgres } from '../src/index.ts'

/** Starts a Postgres in the folder it is given and tells its address; stops it when its input ends. */
try {
  const postgres = await startPostgres({ dataDir: process.argv[2] ?? '', settings: { fsync: 'off' } })
  process.stdout.write(`${JSON.stringify({ said: postgres.url, copied: postgres.copiedProgram })}\n`)
  process.stdin.resume().on('end', () => void postgres.stop())
} catch (error) {
  process.stdout.write(`${JSON.stringify({ said: String(error), copied: null })}\n`)
}
