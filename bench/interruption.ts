/** The user interrupted the run. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted'
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
/** After an interrupt, the time in milliseconds to stop what was started. */
const STOPPING_MS = 20_000

/**
 * Runs `work`. A signal to this process or the time limit aborts it.
 * @throws Interrupted after a signal, once `work` has ended
 */
export async function interruptible<Result>(
  p: { limitMs: number; note: (text: string) => void },
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const interruption = new AbortController()
  const interrupt = (): void => {
    if (interruption.signal.aborted) return
    p.note('interrupted: stopping')
    interruption.abort(new Interrupted())
    AbortSignal.timeout(STOPPING_MS).addEventListener('abort', () => process.exit(1))
  }
  for (const name of SIGNALS) process.on(name, interrupt)
  try {
    const result = await work(AbortSignal.any([interruption.signal, AbortSignal.timeout(p.limitMs)]))
    interruption.signal.throwIfAborted()
    return result
  } catch (error) {
    throw interruption.signal.aborted ? new Interrupted('interrupted', { cause: error }) : error
  } finally {
    for (const name of SIGNALS) process.off(name, interrupt)
  }
}
