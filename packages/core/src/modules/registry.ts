import { foundText, messageOf } from '@carillon/api'

import { CarillonError } from '../kernel/errors.ts'
import type { AnyManifest, LoadedModule, ModuleDeps, ModuleParts, PortToken } from '../ports/module.ts'
import type { Target } from '../ports/target.ts'
import type { SharedDeps } from './deps.ts'
import { checkManifests, refused } from './manifests.ts'
import { checkParts } from './parts.ts'
import { selectModules, type ModuleNeeds } from './selection.ts'

export interface LoadOptions {
  /** Those of the whole installation, whatever this process needs. */
  readonly manifests: readonly AnyManifest[]
  readonly needs: ModuleNeeds
  /** What `sharedDeps` returns. */
  readonly deps: SharedDeps
  /** The settings of a module, checked by its schema. Called for the modules that are loaded. @default none */
  readonly settingsOf?: (manifest: AnyManifest) => object
}

/** The modules of a process, in the order in which they were created. */
export interface LoadedModules extends AsyncDisposable {
  readonly modules: readonly LoadedModule[]
  /** Of the kinds that the process serves. */
  readonly targets: readonly Target[]
  /** Closes the modules, the last one first. Safe to call twice. It does not close their targets, which a worker does. */
  close(): Promise<void>
}

/**
 * Loads the modules that a process needs, and creates each after those whose ports it uses. If one fails, those before it are closed.
 * @throws CarillonError `module_refused` or `unknown_target_kind`
 */
export async function loadModules({ manifests, needs, deps, settingsOf }: LoadOptions): Promise<LoadedModules> {
  const selected = selectModules(checkManifests(manifests), needs)
  const loaded: LoadedModule[] = []
  const ports = new Map<string, unknown>()
  try {
    for (const manifest of selected) {
      const parts = await create(manifest, {
        ...deps.of(manifest.name),
        ...lookUp(manifest, ports),
        settings: settingsOf?.(manifest) ?? {},
      })
      // From here on it is closed with the others, even if it lacks something.
      loaded.push({ manifest, parts: onlyServed(parts, needs) })
      checkParts(manifest, parts)
      for (const [name, port] of Object.entries(parts.ports ?? {})) ports.set(name, port)
    }
  } catch (error) {
    await closeAll(loaded).catch(() => undefined)
    throw error
  }
  let closed: Promise<void> | undefined
  const close = (): Promise<void> => (closed ??= closeAll(loaded))
  return {
    modules: loaded,
    targets: loaded.flatMap(({ parts }) => parts.targets ?? []),
    close,
    [Symbol.asyncDispose]: close,
  }
}

async function create(manifest: AnyManifest, deps: ModuleDeps): Promise<ModuleParts> {
  try {
    const code: Partial<Awaited<ReturnType<AnyManifest['load']>>> = await manifest.load()
    if (typeof code?.create !== 'function') {
      throw new Error(`expected load to return { create }, got ${foundText(code)}`)
    }
    // The module's own schema has checked its settings, or it has none.
    return (await code.create(deps as ModuleDeps<never>)) ?? {}
  } catch (error) {
    if (error instanceof CarillonError && error.code === 'module_refused') throw error
    throw refused(manifest.name, '', messageOf(error), { cause: error })
  }
}

/** A port is found by its token, which the manifest declares: so the order of creation is known before anything is loaded. */
function lookUp(
  { name, uses = [], usesIfThere = [] }: AnyManifest,
  ports: ReadonlyMap<string, unknown>,
): Pick<ModuleDeps, 'use' | 'useIfThere'> {
  const find = <Port>(
    token: PortToken<Port>,
    declared: readonly PortToken<unknown>[],
    field: string,
  ): Port | undefined => {
    if (!declared.some((each) => each.name === token.name)) {
      throw refused(name, field, `expected ${token.name} among them, because the module asks for it, got none`)
    }
    // The token carries the type of its port.
    return ports.get(token.name) as Port | undefined
  }
  return {
    use: (token) => {
      const port = find(token, uses, 'uses')
      if (port === undefined) throw refused(name, 'uses', `expected a module that provides ${token.name}, got none`)
      return port
    },
    useIfThere: (token) => find(token, [...usesIfThere, ...uses], 'usesIfThere'),
  }
}

/** A module may bring several kinds, and a worker serve some of them. */
function onlyServed(parts: ModuleParts, { kinds }: ModuleNeeds): ModuleParts {
  if (kinds === 'all' || parts.targets === undefined) return parts
  return { ...parts, targets: parts.targets.filter(({ kind }) => kinds.includes(kind)) }
}

async function closeAll(loaded: readonly LoadedModule[]): Promise<void> {
  const errors: unknown[] = []
  for (const { parts } of loaded.toReversed()) {
    try {
      await parts.close?.()
    } catch (error) {
      errors.push(error)
    }
  }
  if (errors.length > 0) throw new AggregateError(errors, 'some modules could not be closed')
}
