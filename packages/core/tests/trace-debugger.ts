import { Session, type Debugger } from 'node:inspector/promises'
import { parentPort } from 'node:worker_threads'

import { sourceFileOf, type Call, type SourceFunction, type TraceReport, type TraceRequest } from './trace.ts'

// The debugger of `traceCalls`. It runs in a worker thread, stops the main thread at functions and notes who called them.

/** How Vite exports a name: as a function, which each use of the name in another file calls. */
const EXPORT_OF_VITE = /^\(\) => \{ try \{ return [^;{}]+ \} catch \{\} \}$/

const session = new Session()
const fileOfScript = new Map<string, string>()
/** By the id of the breakpoint. */
const stops = new Map<string, SourceFunction>()
/** By the id of the breakpoint and the caller. */
const calls = new Map<string, Call>()

session.on('Debugger.scriptParsed', ({ params: { scriptId, url } }) => {
  const file = sourceFileOf(url)
  if (file !== undefined) fileOfScript.set(scriptId, file)
})
session.on('Debugger.paused', ({ params: { hitBreakpoints = [], callFrames } }) => {
  const [, ...below] = callFrames.map(({ location }) => fileOfScript.get(location.scriptId))
  const caller = below.find((file) => file !== undefined)
  for (const id of hitBreakpoints) {
    const called = stops.get(id)
    const key = `${id} ${caller}`
    if (called !== undefined && !calls.has(key)) calls.set(key, { called, caller })
  }
  void session.post('Debugger.resume')
})

async function stopAt(functions: readonly SourceFunction[]): Promise<void> {
  session.connectToMainThread()
  await session.post('Debugger.enable')
  for (const [scriptId, ofScript] of Map.groupBy(functions, (each) => each.scriptId)) {
    const { scriptSource } = await session.post('Debugger.getScriptSource', { scriptId })
    for (const each of ofScript) {
      if (EXPORT_OF_VITE.test(scriptSource.slice(each.startOffset, each.endOffset))) continue
      const location = await firstStatement(each, scriptSource)
      if (location === undefined) continue
      const { breakpointId } = await session.post('Debugger.setBreakpoint', { location })
      stops.set(breakpointId, each)
    }
  }
}

/** @returns undefined if there is none, as in a function that only initializes fields */
async function firstStatement(
  { scriptId, startOffset, endOffset }: SourceFunction,
  source: string,
): Promise<Debugger.Location | undefined> {
  // A location exactly at the start belongs to the statement that the function is a part of.
  const start = locationAt(scriptId, source, startOffset + 1)
  const end = locationAt(scriptId, source, endOffset)
  const { locations } = await session.post('Debugger.getPossibleBreakpoints', { start, end })
  return locations[0]
}

function locationAt(scriptId: string, source: string, offset: number): Debugger.Location {
  const lines = source.slice(0, offset).split('\n')
  return { scriptId, lineNumber: lines.length - 1, columnNumber: lines.at(-1)?.length ?? 0 }
}

function report(): void {
  const answer: TraceReport = { stops: [...stops.values()], calls: [...calls.values()] }
  parentPort?.postMessage(answer, [])
}

parentPort?.on('message', (request: TraceRequest) => {
  if (request === 'report') report()
  else void stopAt(request.stopAt).then(report)
})
