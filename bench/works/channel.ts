/** The child's end of a `Child`: its argument, and its channel to the bench. */
export function argumentOf(): unknown {
  return JSON.parse(process.argv[2] ?? 'null')
}

/** A closed IPC channel takes no messages, because the parent is gone. */
export function tell(message: object): void {
  if (process.connected) process.send?.(message)
}

/** Stops this process when the bench ends, for whatever reason. */
export function endWithBench(stop: () => Promise<unknown>): void {
  process.once('disconnect', () => {
    void stop().finally(() => process.exit())
  })
}
