import { Session, type Profiler } from 'node:inspector/promises'

/**
 * The source files of the packages that run any of their functions during a piece of work, by V8's own count of calls. What ran
 * when a file was loaded does not count.
 * @returns paths from `packages/` on, sorted
 */
export async function traceFiles(work: () => Promise<unknown>): Promise<string[]> {
  const session = new Session()
  session.connect()
  try {
    await session.post('Profiler.enable')
    await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
    await work()
    const { result } = await session.post('Profiler.takePreciseCoverage')
    return [...new Set(result.flatMap(calledFile))].toSorted()
  } finally {
    session.disconnect()
  }
}

function calledFile({ url, functions }: Profiler.ScriptCoverage): string[] {
  const [, path] = /\/(packages\/[a-z]+\/src\/.+\.ts)(?:\?.*)?$/.exec(url) ?? []
  const isCalled = functions.some(({ functionName, ranges }) => functionName !== '' && (ranges[0]?.count ?? 0) > 0)
  return path !== undefined && isCalled ? [path] : []
}
