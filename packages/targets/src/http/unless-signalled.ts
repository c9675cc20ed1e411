/** What work comes to; undefined as soon as the signal fires, whatever the work does then. */
export async function unlessSignalled<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result | undefined> {
  if (signal.aborted) return undefined
  const { promise: left, resolve } = Promise.withResolvers<undefined>()
  const leave = (): void => resolve(undefined)
  signal.addEventListener('abort', leave, { once: true })
  try {
    return await Promise.race([work, left])
  } finally {
    signal.removeEventListener('abort', leave)
  }
}
