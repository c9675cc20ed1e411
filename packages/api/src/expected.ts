const TEXT_MAX_LENGTH = 60

/** For zod: says what was expected and what was found, in the words of every message here. */
export function expected(what: string): { error: (issue: { readonly input?: unknown }) => string } {
  return { error: ({ input }) => `expected ${what}, got ${foundText(input)}` }
}

/** A field's name as somebody typed it, for a path or a list. */
export function foundName(name: string): string {
  return harmless(JSON.stringify(shortened(name)).slice(1, -1))
}

/** Shows a value in a message: short, on one line, harmless in a terminal. */
export function foundText(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (typeof value === 'string') return harmless(JSON.stringify(shortened(value)))
  if (value === null || typeof value === 'number' || typeof value === 'boolean') return String(value)
  return Array.isArray(value) ? 'a list' : 'an object'
}

function shortened(text: string): string {
  return text.length > TEXT_MAX_LENGTH ? `${text.slice(0, TEXT_MAX_LENGTH)}…` : text
}

/** JSON escapes control characters and lone surrogates; what turns text around or breaks lines is left. */
function harmless(text: string): string {
  return text.replace(/[\p{Cf}\p{Zl}\p{Zp}\u{7f}-\u{9f}]/gu, (char) => `\\u{${char.codePointAt(0)?.toString(16)}}`)
}
