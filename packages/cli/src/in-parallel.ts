/** Does a thing for each item, so many at once, and answers in their order. The first failure ends it. */
export async function inParallel<Item, Result>(
  items: readonly Item[],
  concurrency: number,
  act: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = []
  const queue = items.entries()
  const lane = async (): Promise<void> => {
    for (const [index, item] of queue) results[index] = await act(item)
  }
  await Promise.all(Array.from({ length: Math.min(concurrency, items.length) }, lane))
  return results
}
