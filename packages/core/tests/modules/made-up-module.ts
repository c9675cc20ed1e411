import type { Meter } from '@opentelemetry/api'
import { metrics } from '@opentelemetry/api'
import { z } from 'zod'

import { systemClock } from '../../src/kernel/clock.ts'
import { Events } from '../../src/kernel/events.ts'
import type { SharedDeps } from '../../src/modules/deps.ts'
import { MODULE_PORT, type AnyManifest, type ModuleDeps, type ModuleParts } from '../../src/ports/module.ts'
import type { Target } from '../../src/ports/target.ts'

export type Create = (deps: ModuleDeps) => ModuleParts | Promise<ModuleParts>

/** The manifest of a module with one kind of target, `<name>_call`. */
export function manifestOf(name: string, changes: Partial<AnyManifest> = {}, create?: Create): AnyManifest {
  const kinds = changes.kinds ?? [`${name}_call`]
  const parts = { targets: kinds.map(targetOf) }
  return {
    port: MODULE_PORT,
    name,
    version: '1.0.0',
    kinds,
    load: () => Promise.resolve({ create: create ?? (() => parts) }),
    ...changes,
  }
}

export function targetOf(kind: string): Target {
  return {
    kind,
    schema: z.object({ kind: z.literal(kind) }),
    policy: { retry: { maxAttempts: 1, baseSeconds: 1, capSeconds: 1 } },
    requiredScope: () => `${kind}:dispatch:*`,
    timeoutMs: () => 1000,
    dispatch: () => Promise.resolve({ kind: 'succeeded', result: null }),
  }
}

const METER: Meter = metrics.getMeter('test')

/** Deps of modules that touch nothing. */
export const NO_DEPS: SharedDeps = {
  of: () => ({
    clock: systemClock,
    events: new Events(),
    meter: METER,
    secrets: { resolve: () => Promise.reject(new Error('no secrets')) },
    runs: { complete: () => Promise.resolve({ kind: 'unknown' }), heartbeat: () => Promise.resolve(false) },
    outbound: { send: () => Promise.resolve({ kind: 'aborted' }), refusalOf: () => undefined },
    db: undefined,
    transact: () => Promise.reject(new Error('no database')),
  }),
}
