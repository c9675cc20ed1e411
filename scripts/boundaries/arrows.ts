/** What one package may know of the world. Anything not written here is refused. */
interface PackageRule {
  /** Packages of this repository that it may import. */
  readonly packages: readonly string[]
  /** `anywhere` also runs in a browser, so no Node module may be imported. */
  readonly runtime: 'node' | 'anywhere'
  /** `none`: even a `clock.ts` may not read the time; the caller passes it. */
  readonly clock: 'injected' | 'none'
  /** The only packages from npm that it may import; without it, any that it declares. */
  readonly npm?: readonly string[]
}

/** The arrows between packages. A package that is not listed has no place yet: give it one here. */
export const PACKAGE_RULES: Readonly<Record<string, PackageRule>> = {
  cadence: { packages: [], runtime: 'anywhere', clock: 'none' },
  postgres: { packages: [], runtime: 'node', clock: 'injected' },
  core: { packages: ['cadence'], runtime: 'node', clock: 'injected' },
  targets: { packages: ['core'], runtime: 'node', clock: 'injected' },
  api: { packages: [], runtime: 'anywhere', clock: 'none', npm: ['zod'] },
  server: { packages: ['core', 'targets', 'api', 'postgres'], runtime: 'node', clock: 'injected' },
  cli: { packages: ['api', 'server'], runtime: 'node', clock: 'injected' },
  web: { packages: ['api', 'cadence'], runtime: 'anywhere', clock: 'injected' },
}

/**
 * The arrows between the folders of `core/src`: what each may import besides itself. Files directly in `src` belong to
 * no layer: those that import a layer are the facade, the others (errors, the Target port) are common ground. An import
 * through such a file counts as an import of everything behind it, so no layer can reach upwards by way of the facade.
 */
export const CORE_LAYERS: Readonly<Record<string, readonly string[]>> = {
  policy: [],
  store: ['policy'],
  keeper: ['policy', 'store'],
  services: ['policy', 'store'],
  facade: ['policy', 'store', 'keeper', 'services'],
}

/** Packages that speak SQL: importing one is as good as writing SQL. */
export const SQL_PACKAGES: readonly string[] = ['kysely', 'pg']
