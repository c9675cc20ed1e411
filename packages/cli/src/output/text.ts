import stringWidth from 'string-width'

const segmenter = new Intl.Segmenter('en', { granularity: 'grapheme' })

/** Cuts a text to a number of terminal columns and ends it with an ellipsis. Never splits a grapheme. */
export function cutText(text: string, columns: number): string {
  if (stringWidth(text) <= columns) return text
  let kept = ''
  let width = 0
  for (const { segment } of segmenter.segment(text)) {
    width += stringWidth(segment)
    if (width > columns - 1) break
    kept += segment
  }
  return columns < 1 ? '' : `${kept.trimEnd()}…`
}

/** Pads a text with spaces to a number of terminal columns. */
export function padText(text: string, columns: number): string {
  return text + ' '.repeat(Math.max(0, columns - stringWidth(text)))
}

/**
 * Makes text from other users safe to print on one line. A name may contain characters that move the cursor, change colours
 * or reverse the text direction: these are shown as escapes.
 */
export function escapeControls(text: string): string {
  return text
    .replace(/\s+/gu, ' ')
    .replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, (char) =>
      isJoiner(char) ? char : `\\u{${char.codePointAt(0)?.toString(16) ?? ''}}`,
    )
}

/** Joiners are part of emoji and of some scripts. */
function isJoiner(char: string): boolean {
  return char === '\u200D' || char === '\u200C'
}
