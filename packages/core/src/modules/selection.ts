import { CarillonError } from '../kernel/errors.ts'
import type { AnyManifest } from '../ports/module.ts'
import { refused } from './manifests.ts'

/** What a process needs modules for. */
export interface ModuleNeeds {
  /** A worker: the kinds that it serves. A server, which checks and shows targets: all. */
  readonly kinds: readonly string[] | 'all'
  /** True for a server. */
  readonly operations: boolean
}

/**
 * The modules that a process loads, each behind those whose ports it uses.
 * @throws CarillonError `unknown_target_kind`, or `module_refused` if modules need each other
 */
export function selectModules(manifests: readonly AnyManifest[], needs: ModuleNeeds): readonly AnyManifest[] {
  requireKnownKinds(manifests, needs.kinds)
  const selected: AnyManifest[] = []
  for (const manifest of manifests) if (isNeeded(manifest, needs)) addWithProviders(manifest, manifests, selected, [])
  return selected
}

function isNeeded({ kinds = [], operations = {} }: AnyManifest, needs: ModuleNeeds): boolean {
  const served = needs.kinds
  if (served === 'all' ? kinds.length > 0 : kinds.some((kind) => served.includes(kind))) return true
  return needs.operations && Object.keys(operations).length > 0
}

/** @param path the modules that lead here, each of which uses a port of the next */
function addWithProviders(
  manifest: AnyManifest,
  manifests: readonly AnyManifest[],
  selected: AnyManifest[],
  path: readonly string[],
): void {
  if (selected.includes(manifest)) return
  const { name, uses = [], usesIfThere = [] } = manifest
  if (path.includes(name)) {
    const circle = [...path.slice(path.indexOf(name)), name].join(' → ')
    throw refused(name, 'uses', `expected modules that do not need each other, got ${circle}`)
  }
  for (const token of [...uses, ...usesIfThere]) {
    const provider = manifests.find(
      ({ provides }) => provides?.some((provided) => provided.name === token.name) === true,
    )
    if (provider !== undefined) addWithProviders(provider, manifests, selected, [...path, name])
  }
  selected.push(manifest)
}

function requireKnownKinds(manifests: readonly AnyManifest[], kinds: ModuleNeeds['kinds']): void {
  if (kinds === 'all') return
  const known = manifests.flatMap((manifest) => manifest.kinds ?? [])
  const unknown = kinds.find((kind) => !known.includes(kind))
  if (kinds.length > 0 && unknown === undefined) return
  const found = unknown === undefined ? 'none' : JSON.stringify(unknown)
  throw new CarillonError(
    'unknown_target_kind',
    `expected kinds of target that this Carillon knows (${known.join(', ')}), got ${found}`,
  )
}
