import type { FastifyInstance } from 'fastify'

import { html } from './html.ts'
import { ignoreBodies } from './http/json-body.ts'
import { ProblemError } from './http/problems/problem-error.ts'
import { isSameOrigin } from './http/same-origin.ts'
import { sendPage } from './page.ts'
import { SESSION_COOKIE, SESSION_MS, type SignIn } from './sign-in.ts'

// Strict: no other site can make a browser act here. `auto`: only over TLS, where the connection is.
const COOKIE = { path: '/', httpOnly: true, sameSite: 'strict', secure: 'auto' } as const

/** GET /sign-in, which a link that was printed leads to, and POST /sign-out, which is a button of the start page. */
export async function registerSignIn(app: FastifyInstance, signIn: SignIn): Promise<void> {
  // No HEAD: what previews a link must not use it up.
  app.get<{ Querystring: { token?: unknown } }>('/sign-in', { exposeHeadRoute: false }, async (request, reply) => {
    const { token } = request.query
    const cookie = typeof token === 'string' ? signIn.redeem(token) : undefined
    if (cookie === undefined) return sendPage(reply, 401, USED_UP)
    return reply
      .setCookie(SESSION_COOKIE, cookie, { ...COOKIE, maxAge: SESSION_MS / 1000 })
      .header('cache-control', 'no-store')
      .redirect('/', 303)
  })

  await app.register(async (scope) => {
    // A form that says nothing is sent as one all the same.
    ignoreBodies(scope)
    scope.post('/sign-out', async ({ headers }, reply) => {
      if (!isSameOrigin(headers)) {
        const detail = 'expected a request of a page of this service, got one of another: sign out on the start page'
        throw new ProblemError('forbidden', detail)
      }
      return reply.clearCookie(SESSION_COOKIE, COOKIE).header('cache-control', 'no-store').redirect('/', 303)
    })
  })
}

const USED_UP = {
  title: 'Not signed in · Carillon',
  body: html`<h1>This link does not sign in</h1>
    <p>It works once, within 15 minutes of the start that printed it. Restart Carillon: it prints another one.</p>
    <p><a href="/">To the start page</a></p>`,
}
