import { sqlStateOf } from './problems/unreachable-database.ts'

/**
 * An error as the log may tell it. What Postgres says of a statement can quote what a request brought (`invalid input
 * syntax for type uuid: "…"`), so of its errors only the code and the place are told.
 */
export function toldError(error: unknown): Error | undefined {
  if (error === undefined) return undefined
  if (!(error instanceof Error)) return new Error('something was thrown that is no error')
  const sqlState = sqlStateOf(error)
  const message = sqlState === undefined ? error.message : `Postgres refused a statement with SQLSTATE ${sqlState}`
  const cause = toldError(error.cause)
  const told = new Error(message, cause === undefined ? {} : { cause })
  told.name = error.name
  if ('code' in error && typeof error.code === 'string') Object.assign(told, { code: error.code })
  told.stack = [`${told.name}: ${message}`, ...framesOf(error)].join('\n')
  return told
}

function framesOf({ stack = '' }: Error): string[] {
  return stack.split('\n').filter((line) => /^ {4}at /.test(line))
}
