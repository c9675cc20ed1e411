export { createHttpTarget } from './target.ts'
export type { HttpTargetOptions } from './options.ts'
export type { HttpSpec } from './spec.ts'
