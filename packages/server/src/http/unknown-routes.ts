import type { FastifyInstance } from 'fastify'

import { ProblemError } from './problems/problem-error.ts'

interface KnownRoute {
  readonly method: string
  readonly segments: readonly string[]
}

/** Answers what no route answers: 405 if another method would, 404 if nothing does. */
export function refuseUnknownRoutes(app: FastifyInstance): void {
  const routes: KnownRoute[] = []
  // Also of routes that are added later, by whoever composes the service.
  app.addHook('onRoute', ({ method, url }) => {
    for (const each of [method].flat()) routes.push({ method: each, segments: url.split('/') })
  })
  app.setNotFoundHandler({ preHandler: app.rateLimit() }, (request) => {
    const segments = (request.url.split('?')[0] ?? '').split('/')
    const allowed = routes.filter((route) => isMatch(route.segments, segments)).map(({ method }) => method)
    const methods = [...new Set(allowed)].toSorted()
    if (methods.length === 0 || methods.includes(request.method)) {
      throw new ProblemError('route_not_found', 'there is nothing under this path: see /docs for what there is')
    }
    const allow = methods.join(', ')
    throw new ProblemError('method_not_allowed', `expected one of ${allow}, got ${request.method}`, {
      headers: { allow },
    })
  })
}

function isMatch(pattern: readonly string[], path: readonly string[]): boolean {
  if (pattern.at(-1) === '*') return pattern.slice(0, -1).every((part, index) => part === path[index])
  return pattern.length === path.length && pattern.every((part, index) => part.startsWith(':') || part === path[index])
}
