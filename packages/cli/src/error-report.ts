import { ApiError, ADMIN_KEY_PHRASE, messageOf, UnreachableError, type FieldProblem } from '@carillon/api'
import type { OperatorError } from '@carillon/server'
import { CommanderError } from 'commander'

import { styled } from './output/style.ts'
import { escapeControls } from './output/text.ts'
import { CliError } from './process/cli-error.ts'
import type { Cli } from './process/cli.ts'
import type { ErrorCode } from './process/exit-codes.ts'
import { findKey } from './service/connect.ts'

interface ErrorReport {
  readonly code: ErrorCode
  readonly message: string
  readonly errors: readonly FieldProblem[]
  /** What the user can do; null if the message says it. */
  readonly advice: string | null
}

export function reportOf(error: unknown, cli: Pick<Cli, 'env' | 'cwd' | 'signal'>): ErrorReport {
  if (cli.signal.aborted) return { code: 'interrupted', message: 'interrupted', errors: [], advice: null }
  if (error instanceof CliError) return error
  if (error instanceof ApiError) {
    const { code, message, errors } = error
    return { code, message, errors, advice: adviceFor(error, cli) }
  }
  if (error instanceof UnreachableError) {
    const advice = 'start it with `npm start`, or set CARILLON_URL to its address'
    return { code: 'unreachable', message: error.message, errors: [], advice }
  }
  if (error instanceof CommanderError) return usageReport(error)
  if (isOperatorError(error)) return { code: error.code, message: error.message, errors: [], advice: null }
  const advice = 'this is a bug of the command line: set CARILLON_DEBUG=1 to see the stack trace'
  return { code: 'unexpected', message: messageOf(error), errors: [], advice }
}

/** Compares the name of the error, because importing its class would load the whole server package for every command. */
function isOperatorError(error: unknown): error is OperatorError {
  return error instanceof Error && error.name === 'OperatorError' && 'code' in error
}

function usageReport({ message }: CommanderError): ErrorReport {
  const [first = '', ...rest] = message.replace(/^error: /, '').split('\n')
  return { code: 'usage', message: first, errors: [], advice: rest.join(' ').replace(/^\((.*)\)$/, '$1') || null }
}

function adviceFor({ code, retryAfterSeconds }: ApiError, cli: Pick<Cli, 'env' | 'cwd'>): string | null {
  switch (code) {
    case 'unauthenticated':
      return `the key comes from ${findKey(cli).source}: correct it, or set CARILLON_API_KEY`
    case 'forbidden':
      return `the key comes from ${findKey(cli).source}: use a key with the role admin (\`carillon keys create --role admin\`)`
    case 'admin_key_required':
      return `the key comes from ${findKey(cli).source}: use ${ADMIN_KEY_PHRASE}; no role of another key is enough`
    case 'revision_conflict':
      return 'another client changed it in the meantime: look at it, and try again'
    case 'rate_limited':
    case 'unavailable':
    case 'idempotency_in_flight':
      return retryAfterSeconds === null ? 'try again' : `try again in ${retryAfterSeconds} s`
    default:
      return null
  }
}

/** The report for programs. */
export function reportJson({ code, message, errors }: ErrorReport): string {
  return `${JSON.stringify({ error: { code, message, errors } })}\n`
}

/** The report for people: the error, the fields at fault, and advice. */
export function reportText(report: ErrorReport, terminal: { readonly hasColor: boolean }): string {
  const { code, message, errors, advice } = report
  if (code === 'interrupted') return `${message}\n`
  // The server's message repeats the first field error: print it once.
  const isRepeated = errors.some((problem) => message.includes(problem.message))
  const headline = isRepeated && errors.length > 1 ? `the request has ${errors.length} errors` : message
  const listed = isRepeated && errors.length === 1 ? [] : errors
  const lines = [
    `${styled(terminal, 'red', 'error:')} ${escapeControls(headline)}`,
    ...listed.map(
      (problem) =>
        `  ${escapeControls(problem.field === '' ? problem.message : `${problem.field}: ${problem.message}`)}`,
    ),
    ...(advice === null ? [] : [escapeControls(advice)]),
  ]
  return `${lines.join('\n')}\n`
}
