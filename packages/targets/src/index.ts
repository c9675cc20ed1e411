export { createHttpTarget } from './http/http-target.ts'
export type { HttpTargetOptions } from './http/http-target-options.ts'
export { HTTP_METHODS } from './http/http-spec.ts'
export type { HttpMethod, HttpSpec } from './http/http-spec.ts'
