import { MODULE_PORT, VERSION, type ModuleManifest } from '@carillon/core'

/** The module of the target kind `http`. This file loads none of its code. */
export const httpModule: ModuleManifest = {
  port: MODULE_PORT,
  name: 'http',
  version: VERSION,
  kinds: ['http'],
  load: () => import('./target.ts'),
}
