import { ZONE_ALIASES } from './zone-aliases.ts'

let namesByLowerCase: ReadonlyMap<string, string> | undefined

/** The current IANA name of a zone given under any name, in any case; undefined if it is none. */
export function canonicalZoneName(name: string): string | undefined {
  namesByLowerCase ??= readNames()
  const lowerCase = name.toLowerCase()
  // Etc/GMT-14 to Etc/GMT+12: IANA names whose sign is the reverse of what people expect, but names.
  if (/^etc\/gmt(-([1-9]|1[0-4])|\+([1-9]|1[0-2]))$/.test(lowerCase)) return `Etc/GMT${lowerCase.slice(7)}`
  return namesByLowerCase.get(lowerCase)
}

/** Engines list some zones under old names and not under current ones; the aliases know both. */
function readNames(): ReadonlyMap<string, string> {
  const names = [...Intl.supportedValuesOf('timeZone'), ...Object.keys(ZONE_ALIASES)]
  const current = new Map(names.map((name) => [name.toLowerCase(), name]))
  for (const [name, aliases] of Object.entries(ZONE_ALIASES)) {
    for (const alias of aliases.split(' ')) current.set(alias.toLowerCase(), name)
  }
  return current
}
