/** The side of a `Child` that is the child: what it was given, and its channel to the bench. */
export function argumentOf(): unknown {
  return JSON.parse(process.argv[2] ?? 'null')
}

/** An IPC channel that is closed takes no messages; who would read them is gone. */
export function tell(message: object): void {
  if (process.connected) process.send?.(message)
}

/** Goes with the bench, whatever became of it. */
export function endWithBench(stop: () => Promise<unknown>): void {
  process.once('disconnect', () => {
    void stop().finally(() => process.exit())
  })
}
