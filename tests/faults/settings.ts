/** How much of everything; each from an environment variable, with a default that makes up a full run. */
export interface FaultSettings {
  readonly seed: number
  readonly cuts: number
  readonly crashes: number
  readonly kills: number
  readonly silences: number
  /** Of a mix of all faults, in seconds. */
  readonly mixSeconds: number
  /** How long a scenario looks for statements it has not cut yet. */
  readonly searchSeconds: number
}

export function readSettings(environment: NodeJS.ProcessEnv): FaultSettings {
  const numberOf = (name: string, fallback: number): number => {
    const text = environment[name]
    if (text === undefined || text === '') return fallback
    const number = Number(text)
    if (!Number.isSafeInteger(number) || number < 0) {
      throw new RangeError(`${name}: expected a whole number, got ${text}`)
    }
    return number
  }
  return {
    seed: numberOf('FAULT_SEED', Math.floor(Math.random() * 1_000_000)),
    cuts: numberOf('FAULT_CUTS', 300),
    crashes: numberOf('FAULT_CRASHES', 30),
    kills: numberOf('FAULT_KILLS', 500),
    silences: numberOf('FAULT_SILENCES', 60),
    mixSeconds: numberOf('FAULT_MIX_SECONDS', 60),
    searchSeconds: numberOf('FAULT_SEARCH_SECONDS', 300),
  }
}
