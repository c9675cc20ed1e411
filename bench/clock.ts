import { OutOfPatience } from './measure.ts'

let origin = performance.timeOrigin

/** Wall-clock time with fractions of a millisecond, for instants that several processes compare. */
export function nowMs(): number {
  return origin + performance.now()
}

/** Synchronizes with the system clock, at the start of a millisecond. */
export function followClock(): void {
  const startedAt = Date.now()
  while (Date.now() === startedAt);
  origin = Date.now() - performance.now()
}

/** Instants of one machine compare with this precision in milliseconds. A call that is earlier than its instant by more is too early. */
export const EARLIEST_MS = -1

const LOOKS = 5

/**
 * By how many milliseconds the system clock was set since `followClock`, within a millisecond. It is the smallest of several looks, because
 * a process that the system suspends between reading its two clocks sees a step where there is none.
 */
export function clockStepMs(): number {
  const steps = Array.from({ length: LOOKS }, () => Date.now() - nowMs())
  return steps.reduce((least, step) => (Math.abs(step) < Math.abs(least) ? step : least))
}

/** Resolves at an instant of wall-clock time. */
export function until(instantMs: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, Math.max(0, instantMs - nowMs()))
  })
}

/** Resolves with the promise's value if it comes before an instant. Otherwise it rejects with `OutOfPatience` and abandons the promise. */
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
