import { relative, resolve } from 'node:path'

import type { RunningCarillon, Settings, StartOptions } from '@carillon/server'

import type { Cli } from '../process/cli.ts'

export interface AddressOptions {
  readonly host?: string
  readonly port?: number
  readonly dataDir?: string
}

/** The default log level on a terminal. Elsewhere the default of the settings applies, so that a log collector gets more lines. */
const LEVEL_ON_TERMINAL = 'warn'

/** Reads the settings of a server or worker from the environment; the options override them. */
export async function readServiceSettings(cli: Cli, { host, port, dataDir }: AddressOptions = {}): Promise<Settings> {
  const { readSettings } = await import('@carillon/server')
  const { env, cwd, terminal } = cli
  const hasLevel = (env['CARILLON_LOG_LEVEL'] ?? '') !== ''
  return readSettings(env, {
    folder: cwd,
    ...(host === undefined ? {} : { host }),
    ...(port === undefined ? {} : { port }),
    ...(dataDir === undefined ? {} : { dataDir: resolve(cwd, dataDir) }),
    ...(terminal.canRedraw && !hasLevel ? { logLevel: LEVEL_ON_TERMINAL } : {}),
  })
}

interface ServiceRun {
  readonly cli: Cli
  readonly isJson: boolean
  readonly start: (options: Required<Pick<StartOptions, 'signal' | 'process'>>) => Promise<RunningCarillon>
  /** What to print once it has started. */
  readonly lines: (service: RunningCarillon) => readonly string[]
}

/**
 * Runs a server, a worker or both until the user interrupts it, whatever happens to the database (I13). Then lets the runs in
 * progress end.
 * Unlike in all other commands, an unhandled rejection does not end the process.
 */
export async function runService({ cli, isJson, start, lines }: ServiceRun): Promise<void> {
  const { signal, terminal } = cli
  const service = await start({ signal, process })
  // JSON goes on one line, for programs that read line by line.
  terminal.writeOut(`${isJson ? JSON.stringify(serviceJson(service)) : lines(service).join('\n')}\n`)
  await aborted(signal)
  terminal.writeError('stopping…\n')
  await service.stop()
}

function serviceJson({ url, signInUrl, dataDir, isFirstStart, copiedProgram }: RunningCarillon): object {
  return { url, signInUrl, dataDir, isFirstStart, copiedProgram }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((done) => {
    if (signal.aborted) done()
    signal.addEventListener('abort', () => done(), { once: true })
  })
}

/** A path relative to the current directory if it lies inside it. */
export function shortPath(cwd: string, path: string): string {
  const shorter = relative(cwd, path)
  return shorter === '' || shorter.startsWith('..') ? path : shorter
}
