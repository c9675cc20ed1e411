/** A longer value is cut where a message shows it. */
const VALUE_MAX_LENGTH = 60
/** A longer field name is cut. Every name of the contract, and every HTTP header that it accepts, is shorter. */
const NAME_MAX_LENGTH = 200

/** A value as a message shows it after "got": short, on one line, safe to print to a terminal. */
export function foundText(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (typeof value === 'string') return `"${shown(value, VALUE_MAX_LENGTH)}"`
  if (value === null || typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (typeof value === 'object') return kindOfObject(value)
  return `a ${typeof value}`
}

/** The name of a field as the caller typed it, for a path or a message. */
export function foundName(name: string): string {
  return shown(name, NAME_MAX_LENGTH)
}

/** `Array.isArray` throws for a revoked proxy. */
function kindOfObject(value: object): string {
  try {
    return Array.isArray(value) ? 'a list' : 'an object'
  } catch {
    return 'an object that cannot be read'
  }
}

/** JSON escapes controls below U+0020 and lone surrogates. The second step escapes what else can reverse text or break a line. */
function shown(text: string, maxLength: number): string {
  const short = text.length > maxLength ? `${text.slice(0, maxLength)}…` : text
  return JSON.stringify(short)
    .slice(1, -1)
    .replace(/[\p{Cf}\p{Zl}\p{Zp}\u{7f}-\u{9f}]/gu, (char) => `\\u{${char.codePointAt(0)?.toString(16)}}`)
}
