import { relative, resolve } from 'node:path'

import type { RunningService, Settings } from '@carillon/server'

import type { Cli } from './cli.ts'
import type { Invocation } from './define.ts'
import type { Exit } from './exit-codes.ts'

export interface AddressOptions {
  readonly host?: string
  readonly port?: number
  readonly dataDir?: string
}

/** On a terminal only what somebody should look at: the rest is for whoever collects logs. */
const LEVEL_ON_TERMINAL = 'warn'

/** The flags of a service, on top of the environment. The directory is one of this shell's. */
export function settingsFlags({ host, port, dataDir }: AddressOptions, { env, cwd, terminal }: Cli): Partial<Settings> {
  const hasLevel = (env['CARILLON_LOG_LEVEL'] ?? '') !== ''
  return {
    ...(host === undefined ? {} : { host }),
    ...(port === undefined ? {} : { port }),
    ...(dataDir === undefined ? {} : { dataDir: resolve(cwd, dataDir) }),
    ...(terminal.canRedraw && !hasLevel ? { logLevel: LEVEL_ON_TERMINAL } : {}),
  }
}

/** Runs until somebody interrupts; then lets what is under way end. */
export async function runService(
  { cli, isJson }: Invocation<object>,
  start: (options: { readonly signal: AbortSignal }) => Promise<RunningService>,
  lines: (service: RunningService) => readonly string[],
): Promise<Exit> {
  const { signal, terminal } = cli
  const service = await start({ signal })
  // On one line, for programs that read as it comes.
  terminal.writeOut(`${isJson ? JSON.stringify(described(service)) : lines(service).join('\n')}\n`)
  const failure = await Promise.race([interruption(signal), service.failed])
  if (failure === undefined) terminal.writeError('stopping…\n')
  await service.stop()
  if (failure !== undefined) throw failure
  return 'ok'
}

function described({ url, signInUrl, dataDir, isFirstStart, copiedProgram }: RunningService): object {
  return { url, signInUrl, dataDir, isFirstStart, copiedProgram }
}

function interruption(signal: AbortSignal): Promise<undefined> {
  return new Promise((done) => {
    if (signal.aborted) done(undefined)
    signal.addEventListener('abort', () => done(undefined), { once: true })
  })
}

/** A path as short as this shell can say it. */
export function pathFrom(cwd: string, path: string): string {
  const shorter = relative(cwd, path)
  return shorter === '' || shorter.startsWith('..') ? path : shorter
}
