import { OutOfPatience } from './measure.ts'

/** The wall's clock with fractions of a millisecond, for instants that several processes compare. */
export function nowMs(): number {
  return performance.timeOrigin + performance.now()
}

/** Resolves at an instant of the wall's clock. */
export function until(instantMs: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, Math.max(0, instantMs - nowMs()))
  })
}

/** What the promise gives, if it does so before an instant; else rejects with `OutOfPatience` and leaves it to itself. */
export async function within<Result>(promise: Promise<Result>, instantMs: number): Promise<Result> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(
    () => {
      late.reject(new OutOfPatience('expected an end in the time that was given, got none'))
    },
    Math.max(0, instantMs - nowMs()),
  )
  try {
    return await Promise.race([promise, late.promise])
  } finally {
    clearTimeout(timer)
  }
}
