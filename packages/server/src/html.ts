/** Text that is HTML already. Made only by `html`, so nothing gets onto a page unescaped by mistake. */
export class Html {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

type Piece = string | number | Html | readonly Html[]

/** A template whose holes are escaped, unless they are HTML themselves. */
export function html(texts: TemplateStringsArray, ...pieces: readonly Piece[]): Html {
  const [first = '', ...rest] = texts
  return new Html(rest.reduce((sum, text, index) => sum + render(pieces[index] ?? '') + text, first))
}

function render(piece: Piece): string {
  if (piece instanceof Html) return piece.text
  if (typeof piece === 'object') return piece.map(({ text }) => text).join('')
  return escape(String(piece))
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

function escape(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => ENTITIES[character] ?? character)
}
