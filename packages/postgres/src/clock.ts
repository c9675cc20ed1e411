/** Calls back after `ms`, unless the returned function was called before. Does not keep the process alive. */
export function after(ms: number, callback: () => void): () => void {
  const timer = setTimeout(callback, ms)
  timer.unref()
  return () => {
    clearTimeout(timer)
  }
}

export function delay(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms)
  })
}
