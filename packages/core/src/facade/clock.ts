/**
 * What this machine takes for now, in epoch milliseconds. Only to say how wrong it is: nothing is decided by it, for what is
 * due the database's clock says (I10).
 */
export function machineNow(): number {
  return Date.now()
}
