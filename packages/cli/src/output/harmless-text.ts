/**
 * Text that others wrote, on one line and safe to show: a name may hold what moves the cursor, changes colours or turns
 * text around.
 */
export function harmlessText(text: string): string {
  return text
    .replace(/\s+/gu, ' ')
    .replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, (char) =>
      isJoiner(char) ? char : `\\u{${char.codePointAt(0)?.toString(16) ?? ''}}`,
    )
}

/** Within an emoji or a script that needs it. */
function isJoiner(char: string): boolean {
  return char === '\u200D' || char === '\u200C'
}
