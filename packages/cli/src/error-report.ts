import { ApiError, INSTALLATION_KEY, UnreachableError, type FieldProblem } from '@carillon/api'
import type { ServiceError } from '@carillon/server'
import { CommanderError } from 'commander'

import { CliError } from './cli-error.ts'
import type { Cli } from './cli.ts'
import { findKey } from './connection.ts'
import { EXIT_OF_ERROR, type ErrorCode } from './exit-codes.ts'
import { harmlessText } from './output/harmless-text.ts'
import { styled } from './output/style.ts'

interface ErrorReport {
  readonly code: ErrorCode
  readonly message: string
  readonly errors: readonly FieldProblem[]
  /** What to do about it. */
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
    const advice = 'start it with `npm start`, or say in CARILLON_URL where it is'
    return { code: 'unreachable', message: error.message, errors: [], advice }
  }
  if (error instanceof CommanderError) return usageReport(error)
  if (isServiceError(error)) return { code: error.code, message: error.message, errors: [], advice: null }
  const message = error instanceof Error ? error.message : String(error)
  const advice = 'this is a fault of the command line: set CARILLON_DEBUG=1 to see where'
  return { code: 'unexpected', message, errors: [], advice }
}

/** By its name: to import the class would load the whole server for every command. */
function isServiceError(error: unknown): error is ServiceError {
  return (
    error instanceof Error && error.name === 'ServiceError' && 'code' in error && String(error.code) in EXIT_OF_ERROR
  )
}

function usageReport({ message }: CommanderError): ErrorReport {
  const [first = '', ...rest] = message.replace(/^error: /, '').split('\n')
  return { code: 'usage', message: first, errors: [], advice: rest.join(' ').replace(/^\((.*)\)$/, '$1') || null }
}

function adviceFor({ code, message, retryAfterSeconds }: ApiError, cli: Pick<Cli, 'env' | 'cwd'>): string | null {
  switch (code) {
    case 'unauthenticated':
      return `the key was taken from ${findKey(cli).source}: correct it, or set CARILLON_API_KEY`
    case 'forbidden':
      return `the key was taken from ${findKey(cli).source}: ${betterKey(message)}`
    case 'revision_conflict':
      return 'somebody changed it meanwhile: look at it, and do it again'
    case 'rate_limited':
    case 'unavailable':
    case 'idempotency_in_flight':
      return retryAfterSeconds === null ? 'try again' : `try again in ${retryAfterSeconds} s`
    default:
      return null
  }
}

/** By what the service said: it alone knows which of the two is missing. */
function betterKey(message: string): string {
  if (message.includes(INSTALLATION_KEY)) return `${INSTALLATION_KEY} is needed, no role of another is enough`
  return 'use one with the role admin (`carillon keys create --role admin`)'
}

/** For programs. */
export function reportJson({ code, message, errors }: ErrorReport): string {
  return `${JSON.stringify({ error: { code, message, errors } })}\n`
}

/** For people: what went wrong, which fields are at fault, what to do. */
export function reportText(report: ErrorReport, terminal: { readonly hasColor: boolean }): string {
  const { code, message, errors, advice } = report
  if (code === 'interrupted') return `${message}\n`
  // The service's message tells the first fault: it is not told twice.
  const isTold = errors.some((problem) => message.includes(problem.message))
  const headline = isTold && errors.length > 1 ? `${errors.length} things are wrong` : message
  const told = isTold && errors.length === 1 ? [] : errors
  const lines = [
    `${styled(terminal, 'red', 'error:')} ${harmlessText(headline)}`,
    ...told.map(
      (problem) => `  ${harmlessText(problem.field === '' ? problem.message : `${problem.field}: ${problem.message}`)}`,
    ),
    ...(advice === null ? [] : [harmlessText(advice)]),
  ]
  return `${lines.join('\n')}\n`
}
