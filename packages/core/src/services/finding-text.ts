/** How an instant reads in a finding. */
export function formatInstant(instant: number): string {
  return new Date(instant).toISOString()
}
