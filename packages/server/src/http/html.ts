import { createHash } from 'node:crypto'

import type { FastifyReply } from 'fastify'

/** Escaped HTML. Only `html` and `sendPage` create it, so no unescaped text gets onto a page by mistake. */
export class Html {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

type Piece = string | number | Html | readonly Html[]

/** A template tag that escapes its values, unless they are Html themselves. */
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

const STYLE = `
:root { color-scheme: light dark; --line: light-dark(#ddd, #3a3a3a); --soft: light-dark(#666, #a0a0a0);
  --accent: light-dark(#0b5cad, #7cb7ff); --panel: light-dark(#f6f6f4, #232323) }
body { margin: 0 auto; max-width: 72rem; padding: 1.5rem; font: 1rem/1.5 system-ui, sans-serif;
  color: light-dark(#1c1c1c, #ececec); background: light-dark(#fff, #181818) }
header, footer { display: flex; flex-wrap: wrap; gap: 1.25rem; align-items: baseline }
footer { margin-top: 2rem; color: var(--soft) }
h1 { margin: 0; font-size: 1.5rem }
nav { margin-left: auto; display: flex; gap: 1.25rem }
a, button { color: var(--accent) }
button { padding: 0; border: 0; background: none; font: inherit; text-decoration: underline; cursor: pointer }
pre { padding: .75rem 1rem; overflow-x: auto; background: var(--panel); border: 1px solid var(--line); border-radius: .4rem }
code, pre { font: .9rem/1.5 ui-monospace, monospace }
.wide { overflow-x: auto }
table { width: 100%; margin-top: 1.5rem; border-collapse: collapse }
th, td { padding: .6rem .75rem .6rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line) }
th { font-weight: 600; color: var(--soft); white-space: nowrap }
small { display: block; color: var(--soft) }
time { white-space: nowrap; font-variant-numeric: tabular-nums }
b.active, b.succeeded { color: light-dark(#14713d, #6fd39b) }
b.failed { color: light-dark(#b3261e, #ff9d94) }
b.paused, b.retrying, b.skipped, b.cancelled { color: light-dark(#8a5a00, #f2c266) }
`

/** The policy of these pages allows `STYLE` and nothing else: they have no script, and an injected one must not run. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ')

/** Sends a whole page that must not be cached, because it shows the current state to a signed-in browser. */
export function sendPage(
  reply: FastifyReply,
  status: number,
  { title, body }: { title: string; body: Html },
): FastifyReply {
  // Not built with `html`: escaping would change the style, and so its hash would not match the policy above.
  const style = new Html(`<style>${STYLE}</style>`)
  const page = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>${title}</title>
        ${style}
      </head>
      <body>
        ${body}
      </body>
    </html> `
  return (
    reply
      .code(status)
      .header('content-type', 'text/html; charset=utf-8')
      .header('content-security-policy', CONTENT_SECURITY_POLICY)
      // With helmet's default, no-referrer, a browser would send `Origin: null` with a form, and sign-out would be refused.
      .header('referrer-policy', 'same-origin')
      .header('cache-control', 'no-store')
      .send(page.text)
  )
}
