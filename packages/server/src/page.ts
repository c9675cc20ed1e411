import { createHash } from 'node:crypto'

import type { FastifyReply } from 'fastify'

import { Html, html } from './html.ts'

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

/** Nothing but this style: a page without script has no use for more, and whatever slipped in could do nothing. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ')

/** Sends a whole page. Not to be kept by anybody: what it shows is of this moment, and of who asked. */
export function sendPage(
  reply: FastifyReply,
  status: number,
  { title, body }: { title: string; body: Html },
): FastifyReply {
  // Built of constants alone, so that its hash is the one above.
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
      // Under the default, no-referrer, a browser says `Origin: null` of a form: nobody could tell that it is from here.
      .header('referrer-policy', 'same-origin')
      .header('cache-control', 'no-store')
      .send(page.text)
  )
}
