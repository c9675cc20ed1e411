/** Returns the argument with which the bench started this process. */
export function argumentOf(): unknown {
  return JSON.parse(process.argv[2] ?? 'null')
}

/** Sends a message to the bench. Does nothing if the bench has ended. */
export function tell(message: object): void {
  if (process.connected) process.send?.(message)
}

/** Stops this process when the bench ends, whatever the reason. */
export function endWithBench(stop: () => Promise<unknown>): void {
  process.once('disconnect', () => {
    void stop().finally(() => process.exit())
  })
}
