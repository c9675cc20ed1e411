import { startPostgres } from '../src/index.ts'

/** Starts a Postgres in the given folder, prints its URL and each restart, and stops it when stdin ends. */
try {
  const restarts = {
    ended: () => undefined,
    failed: (error: unknown) => process.stderr.write(`${String(error)}\n`),
    restarted: () => process.stdout.write('restarted\n'),
  }
  const postgres = await startPostgres({ dataDir: process.argv[2] ?? '', settings: { fsync: 'off' }, restarts })
  process.stdout.write(`${JSON.stringify({ said: postgres.url, copied: postgres.copiedProgram })}\n`)
  process.stdin.resume().on('end', () => void postgres.stop())
} catch (error) {
  process.stdout.write(`${JSON.stringify({ said: String(error), copied: null })}\n`)
}
