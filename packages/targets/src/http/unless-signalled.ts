/** What work comes to; undefined as soon as the signal fires, whatever the work does then. */
export async function unlessSignalled<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result | undefined> {
  const { promise: left, resolve } = Promise.withResolvers<undefined>()
  const leave = (): void => resolve(undefined)
  if (signal.aborted) leave()
  signal.addEventListener('abort', leave, { once: true })
  try {
    // Even of a signal that has fired: a race hears of a rejection that comes later, which nobody else would.
    return await Promise.race([left, work])
  } finally {
    signal.removeEventListener('abort', leave)
  }
}
