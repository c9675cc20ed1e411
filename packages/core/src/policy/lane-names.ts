/** How many lanes each kind of target has. `lane_of` in the schema uses the same number, and a test compares the two. */
const LANES_PER_KIND = 64

/** The lanes of the kinds that a worker serves. */
export function lanesOf(targetKinds: readonly string[]): string[] {
  return lanes(targetKinds, '.')
}

/** The lanes in which detached runs of these kinds wait for their completion or their deadline. */
export function endLanesOf(targetKinds: readonly string[]): string[] {
  return lanes(targetKinds, '~')
}

function lanes(targetKinds: readonly string[], separator: '.' | '~'): string[] {
  return targetKinds.flatMap((kind) =>
    Array.from({ length: LANES_PER_KIND }, (_, lane) => `${kind}${separator}${lane}`),
  )
}
