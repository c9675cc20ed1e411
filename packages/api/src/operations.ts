import type { Operation } from './operation.ts'
import { accessOperations } from './operations/access.ts'
import { coreOperations } from './operations/core.ts'

/** Every operation by its id. */
export const operations = { ...coreOperations, ...accessOperations } as const satisfies Readonly<
  Record<string, Operation>
>

export type OperationId = keyof typeof operations

export const operationIds = Object.keys(operations) as readonly OperationId[]
