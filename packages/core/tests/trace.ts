import { once } from 'node:events'
import { Session } from 'node:inspector/promises'
import { setFlagsFromString } from 'node:v8'
import { isMainThread, Worker } from 'node:worker_threads'

/** A function in the sources of core or server. */
export interface SourceFunction {
  /** The path of its file, from `packages/` on. */
  readonly file: string
  /** Empty if it has no name. */
  readonly name: string
  readonly scriptId: string
  /** Its place in the script that V8 runs, which is not that in the file: Vite changes the text. */
  readonly startOffset: number
  readonly endOffset: number
}

export interface Call {
  readonly called: SourceFunction
  /** The file of the nearest source function below it on the stack, often the same file; undefined if there is none. */
  readonly caller: string | undefined
}

/** What `trace-debugger.ts` is asked: to stop at these functions from now on, or to report. */
export type TraceRequest = { readonly stopAt: readonly SourceFunction[] } | 'report'

export interface TraceReport {
  /** The functions at which the debugger stops. */
  readonly stops: readonly SourceFunction[]
  /** The first call of each function from each file, in the order of these calls. */
  readonly calls: readonly Call[]
}

/** The compilers of V8 that work in other threads. A function that one of them compiles meanwhile does not stop. */
const COMPILERS = ['sparkplug', 'maglev', 'turbofan']

/**
 * Traces which functions of core and server a piece of work calls, in their order. The work runs twice. In the first run V8 counts the
 * calls of each function. In the second one a debugger in another thread stops this thread at the first statement of each function
 * that the first run called, notes the call and lets this thread go on. What only one of the two runs calls is missing.
 * @param between runs between the two and is not traced
 * @returns the first call of each function from each file, in the order of these calls
 */
export async function traceCalls(
  work: () => Promise<unknown>,
  between: () => Promise<unknown> = async () => undefined,
): Promise<readonly Call[]> {
  if (!isMainThread) throw new Error('expected the main thread, which the debugger connects to, got a worker thread')
  const counter = new Session()
  counter.connect()
  const tracer = new Worker(new URL('trace-debugger.ts', import.meta.url))
  for (const compiler of COMPILERS) setFlagsFromString(`--no-${compiler}`)
  try {
    await counter.post('Profiler.enable')
    await counter.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
    await work()
    const stopAt = await takeCalled(counter)
    await between()
    await ask(tracer, { stopAt })
    await takeCalled(counter)
    await work()
    const called = await takeCalled(counter)
    const { stops, calls } = await ask(tracer, 'report')
    requireAll(stops, called, calls)
    return calls
  } finally {
    for (const compiler of COMPILERS) setFlagsFromString(`--${compiler}`)
    await tracer.terminate()
    counter.disconnect()
  }
}

/** The functions that were called since the last time. */
async function takeCalled(counter: Session): Promise<SourceFunction[]> {
  const { result } = await counter.post('Profiler.takePreciseCoverage')
  return result.flatMap(({ scriptId, url, functions }) => {
    const file = sourceFileOf(url)
    if (file === undefined) return []
    return functions.flatMap(({ functionName: name, ranges: [range] }) =>
      range === undefined || range.count === 0
        ? []
        : [{ file, name, scriptId, startOffset: range.startOffset, endOffset: range.endOffset }],
    )
  })
}

/** @returns undefined for a script that is no source file of core or server */
export function sourceFileOf(url: string): string | undefined {
  return /\/(packages\/(?:core|server)\/src\/.+\.ts)(?:\?.*)?$/.exec(url)?.[1]
}

async function ask(tracer: Worker, request: TraceRequest): Promise<TraceReport> {
  const answer = once(tracer, 'message')
  tracer.postMessage(request, [])
  const [report] = (await answer) as [TraceReport]
  return report
}

/** @throws if a function was called that should have stopped and did not: the trace would have a gap */
function requireAll(stops: readonly SourceFunction[], called: readonly SourceFunction[], calls: readonly Call[]): void {
  const stopped = new Set(stops.map(keyOf))
  const traced = new Set(calls.map((call) => keyOf(call.called)))
  const missing = called.map(keyOf).filter((key) => stopped.has(key) && !traced.has(key))
  if (missing.length > 0) throw new Error(`expected these calls in the trace, got none: ${missing.join(', ')}`)
}

function keyOf({ file, name, scriptId, startOffset }: SourceFunction): string {
  return `${file} ${name} (${scriptId}:${startOffset})`
}
