import { CORE_LAYERS } from './arrows.ts'
import type { Violation } from './violation.ts'
import type { SourceFile, Workspace } from './workspace.ts'

/** The arrows between the folders of core; see `CORE_LAYERS` for what counts as an import. */
export function checkLayers(workspace: Workspace): Violation[] {
  return workspace.files
    .values()
    .filter((file) => !file.isTest)
    .flatMap((file) => {
      const layer = layerOf(file.path)
      if (layer === undefined) return []
      const allowed = CORE_LAYERS[layer]
      return allowed ? checkFile(file, layer, allowed, workspace) : [unplacedLayer(file, layer)]
    })
    .toArray()
}

function checkFile(file: SourceFile, layer: string, allowed: readonly string[], { files }: Workspace): Violation[] {
  return file.imports.flatMap(({ target, line }) => {
    if (target === undefined) return []
    const reached = layersBehind(target, files)
    return [...reached]
      .filter(([other]) => other !== layer && !allowed.includes(other))
      .map(([other, path]) => ({
        rule: 'layer-arrow',
        file: file.path,
        line,
        message: `${layer} may not import ${other} (${path})`,
      }))
  })
}

/** The layers an import of `start` leads to, each with the first file of it; looks through files of no layer. */
function layersBehind(start: string, files: Workspace['files']): Map<string, string> {
  const found = new Map<string, string>()
  const seen = new Set([start])
  for (const path of seen) {
    const layer = layerOf(path)
    if (layer !== undefined) {
      if (!found.has(layer)) found.set(layer, path)
      continue
    }
    for (const { target } of files.get(path)?.imports ?? []) {
      if (target?.startsWith('packages/core/')) seen.add(target)
    }
  }
  return found
}

function layerOf(path: string): string | undefined {
  return /^packages\/core\/src\/([^/]+)\//.exec(path)?.[1]
}

function unplacedLayer(file: SourceFile, layer: string): Violation {
  return {
    rule: 'layer-arrow',
    file: file.path,
    line: 1,
    message: `folder ${layer} has no place among the layers of core: add it to scripts/boundaries/arrows.ts`,
  }
}
