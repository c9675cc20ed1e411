import type { AnyManifest, ModuleParts } from '../ports/module.ts'
import { refused } from './manifests.ts'

/**
 * Compares what a module brings with what its manifest says.
 * @throws CarillonError `module_refused`
 */
export function checkParts(manifest: AnyManifest, parts: ModuleParts): void {
  const { name, kinds = [], operations = {}, provides = [] } = manifest
  requireSame(name, 'targets', kinds, parts.targets?.map(({ kind }) => kind) ?? [])
  requireSame(name, 'handlers', Object.keys(operations), Object.keys(parts.handlers ?? {}))
  requireSame(
    name,
    'ports',
    provides.map((token) => token.name),
    Object.keys(parts.ports ?? {}),
  )
  const services = (parts.services ?? []).map((each) => (each.runsIn === 'each' ? each.service.name : each.name))
  for (const service of services) requireOwn(name, 'services', service)
  requireDistinct(name, 'services', services)
  if (services.length > 0 && kinds.length + provides.length === 0) {
    const message =
      'expected kinds or a port in the manifest, for which workers load the module and run its services, got none'
    throw refused(name, 'services', message)
  }
  requireDistinct(name, 'checks', parts.checks?.map((check) => check.name) ?? [])
}

function requireSame(
  module: string,
  field: keyof ModuleParts,
  declared: readonly string[],
  brought: readonly string[],
): void {
  const list = (words: readonly string[]): string => words.toSorted().join(', ') || 'none'
  if (list(declared) === list(brought)) return
  throw refused(module, field, `expected those of the manifest (${list(declared)}), got ${list(brought)}`)
}

/** Doctor and metrics report services by name. */
function requireOwn(module: string, field: keyof ModuleParts, word: string): void {
  if (word.startsWith(`${module} `)) return
  throw refused(module, field, `expected names that begin with "${module} ", got ${JSON.stringify(word)}`)
}

function requireDistinct(module: string, field: keyof ModuleParts, words: readonly string[]): void {
  const twice = words.find((word, index) => words.indexOf(word) !== index)
  if (twice !== undefined) throw refused(module, field, `expected distinct names, got ${JSON.stringify(twice)} twice`)
}
