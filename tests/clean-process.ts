import { afterAll, vi } from 'vitest'

/** Test files share a process. Each one must leave the clock and the environment as it found them. */
const before = { ...process.env }

afterAll(() => {
  vi.useRealTimers()
  vi.unstubAllEnvs()
  vi.unstubAllGlobals()
  vi.restoreAllMocks()
  for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name]
  Object.assign(process.env, before)
})
