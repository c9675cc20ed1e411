import { relative, resolve } from 'node:path'

import type { RunningService, Settings, StartOptions } from '@carillon/server'

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

/**
 * Runs until somebody interrupts, whatever happens to its database (I13); then lets what is under way end. A promise that is
 * rejected and that nobody handles does not end the process either; all other commands keep Node's behaviour.
 */
export async function runService(
  { cli, isJson }: Invocation<object>,
  start: (options: Required<Pick<StartOptions, 'signal' | 'process'>>) => Promise<RunningService>,
  lines: (service: RunningService) => readonly string[],
): Promise<Exit> {
  const { signal, terminal } = cli
  const service = await start({ signal, process })
  // On one line, for programs that read as it comes.
  terminal.writeOut(`${isJson ? JSON.stringify(described(service)) : lines(service).join('\n')}\n`)
  await interruption(signal)
  terminal.writeError('stopping…\n')
  await service.stop()
  return 'ok'
}

function described({ url, signInUrl, dataDir, isFirstStart, copiedProgram }: RunningService): object {
  return { url, signInUrl, dataDir, isFirstStart, copiedProgram }
}

function interruption(signal: AbortSignal): Promise<void> {
  return new Promise((done) => {
    if (signal.aborted) done()
    signal.addEventListener('abort', () => done(), { once: true })
  })
}

/** A path as short as this shell can say it. */
export function pathFrom(cwd: string, path: string): string {
  const shorter = relative(cwd, path)
  return shorter === '' || shorter.startsWith('..') ? path : shorter
}
