import { paramsIn, pathOf, type Operation, type OperationTable } from '@carillon/api'
import { CarillonError, type ModuleHandler, type RawRoute } from '@carillon/core'

import type { AnyHandler } from './operation-handlers.ts'

/** What one module shows over HTTP. */
export interface ServedModule {
  readonly name: string
  /** Those of its manifest. */
  readonly operations: OperationTable
  /** One for each operation. */
  readonly handlers: Readonly<Record<string, ModuleHandler>>
  readonly rawRoutes: readonly RawRoute[]
}

/** An operation with the handler that answers it. */
export interface ServedOperation {
  readonly id: string
  /** Names in messages who brings it: `Carillon`, `the module tickets`. */
  readonly owner: string
  readonly operation: Operation
  readonly handle: AnyHandler
}

/** Paths of the server itself. A path that ends with `/` stands for everything below it. */
const OWN_PATHS = ['/', '/sign-in', '/sign-out', '/healthz', '/readyz', '/metrics', '/openapi.json', '/docs', '/docs/']

/**
 * The operations of Carillon and of its modules, each with its handler.
 * @throws CarillonError `module_refused` if two of them collide, or one is incomplete; the message names them
 */
export function serveTogether(
  own: { readonly operations: OperationTable; readonly handlers: Readonly<Record<string, AnyHandler>> },
  modules: readonly ServedModule[],
): ServedOperation[] {
  const served = [
    ...join('Carillon', own.operations, own.handlers),
    ...modules.flatMap(({ name, operations, handlers }) => join(ownerOf(name), operations, toHandlers(handlers))),
  ]
  for (const each of served) requireParams(each)
  requireDistinct(
    served.map(({ id, owner }) => ({ key: id, text: `the operation ${id} of ${owner}` })),
    'ids of operations',
  )
  requireDistinct(
    [
      ...OWN_PATHS.map((path) => ({ key: `get ${path}`, text: `a page of Carillon at ${path}` })),
      ...served.map(({ id, owner, operation: { method, ...operation } }) => {
        const path = pathOf(operation)
        return { key: routeKey(method, path), text: `${id} of ${owner}, which is ${method.toUpperCase()} ${path}` }
      }),
      ...modules.flatMap(({ name, rawRoutes }) =>
        rawRoutes.map(({ method, path }) => ({
          key: routeKey(method, path),
          text: `a raw route of ${ownerOf(name)}, which is ${method} ${path}`,
        })),
      ),
    ],
    'methods and paths',
  )
  return served
}

function ownerOf(name: string): string {
  return `the module ${name}`
}

function join(
  owner: string,
  operations: OperationTable,
  handlers: Readonly<Record<string, AnyHandler>>,
): ServedOperation[] {
  const unknown = Object.keys(handlers).find((id) => !Object.hasOwn(operations, id))
  if (unknown !== undefined) throw refused(`${owner}: expected an operation for the handler ${unknown}, got none`)
  return Object.entries(operations).map(([id, operation]) => {
    const handle = handlers[id]
    if (handle === undefined) throw refused(`${owner}: expected a handler for the operation ${id}, got none`)
    return { id, owner, operation, handle }
  })
}

/** A module's handler knows neither the parts of the server nor the key of the caller. */
function toHandlers(handlers: Readonly<Record<string, ModuleHandler>>): Record<string, AnyHandler> {
  return Object.fromEntries(
    Object.entries(handlers).map(([id, handle]): [string, AnyHandler] => [
      id,
      ({ caller, params, query, headers, body }) => handle({ caller, params, query, headers, body }),
    ]),
  )
}

function requireParams({ id, owner, operation: { path, params, projectParam } }: ServedOperation): void {
  const [inPath, described] = [paramsIn(path).toSorted(), Object.keys(params?.shape ?? {}).toSorted()]
  if (inPath.join() !== described.join()) {
    const [expected, found] = [inPath, described].map((names) => names.join(', ') || 'none')
    throw refused(`${owner}: expected \`params\` of ${id} to be those of its path (${expected}), got ${found}`)
  }
  if (projectParam !== undefined && !inPath.includes(projectParam)) {
    throw refused(`${owner}: expected \`projectParam\` of ${id} to be in its path, got ${projectParam}`)
  }
}

/** Two paths that differ in the names of their parameters only are one route. */
function routeKey(method: string, path: string): string {
  return `${method.toLowerCase()} ${path.replaceAll(/\{\w+\}/g, '{}')}`
}

function requireDistinct(items: readonly { readonly key: string; readonly text: string }[], what: string): void {
  for (const [, [first, second]] of Map.groupBy(items, ({ key }) => key)) {
    if (first === undefined || second === undefined) continue
    throw refused(`expected ${what} to be distinct, got ${first.text}, and ${second.text}: rename one`)
  }
}

function refused(message: string): CarillonError {
  return new CarillonError('module_refused', message)
}
