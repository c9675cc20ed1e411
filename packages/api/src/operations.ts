import type { Operation, TAGS } from './operation.ts'
import { accessOperations } from './operations/access.ts'
import { callbackOperations } from './operations/callbacks.ts'
import { coreOperations } from './operations/core.ts'

/** Every operation of Carillon itself by its id. Modules bring others. */
export const operations = {
  ...coreOperations,
  ...callbackOperations,
  ...accessOperations,
} as const satisfies Readonly<Record<string, Operation & { readonly tag: keyof typeof TAGS }>>

export type OperationId = keyof typeof operations

export const operationIds = Object.keys(operations) as readonly OperationId[]
