import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

import { problemAnswer } from './problem-answer.ts'
import { problemOf } from './problem-of.ts'

/** Answers whatever is thrown as a problem, and leaves it with the request for the log. */
export function replyWithProblems(app: FastifyInstance): void {
  app.setErrorHandler((error, request, reply) => sendProblem(error, request, reply))
}

export function sendProblem(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const problem = problemOf(error)
  request.problem = problem
  const { status, headers, body } = problemAnswer(problem, request.id)
  // Not as an object: its serializer would say that the type is JSON.
  return reply.code(status).headers(headers).send(JSON.stringify(body))
}
