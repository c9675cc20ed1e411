import { isBuiltin } from 'node:module'
import { posix } from 'node:path'

import { PACKAGE_RULES } from './arrows.ts'
import type { Violation } from './violation.ts'
import { npmNameOf, packageIdOf, type Import, type SourceFile, type Workspace } from './workspace.ts'

type Problem = Pick<Violation, 'rule' | 'message'>

/** Checks each import by itself: the arrow between the packages, the declaration in package.json, the other package's exports. */
export function checkImports(workspace: Workspace): Violation[] {
  const unplaced = workspace.packages
    .values()
    .filter(({ id }) => id !== '' && !(id in PACKAGE_RULES))
    .map(({ id, folder }) => ({
      rule: 'package-arrow',
      file: `${folder}/package.json`,
      line: 1,
      message: `package ${id} has no place among the arrows: add it to scripts/boundaries/arrows.ts`,
    }))
  const broken = workspace.files
    .values()
    .flatMap((file) =>
      file.imports.flatMap((imported) =>
        checkImport(file, imported, workspace).map((problem) => ({ ...problem, file: file.path, line: imported.line })),
      ),
    )
  return [...unplaced, ...broken]
}

function checkImport(file: SourceFile, imported: Import, workspace: Workspace): Problem[] {
  const { specifier, target } = imported
  if (specifier.startsWith('.')) return checkRelative(file, specifier, target, workspace)
  if (isBuiltin(specifier)) return checkBuiltin(file, specifier)
  const name = npmNameOf(specifier)
  if (name === undefined) return []
  const owner = workspace.packages.values().find((pkg) => pkg.name === name)
  if (!owner) return checkNpm(file, name, workspace)
  if (target === undefined) {
    return [{ rule: 'private-import', message: `${specifier} is not among the exports of ${name}` }]
  }
  return owner === file.package ? [] : checkArrow(file, owner.id, name)
}

function checkRelative(
  file: SourceFile,
  specifier: string,
  target: string | undefined,
  workspace: Workspace,
): Problem[] {
  const path = posix.join(posix.dirname(file.path), specifier)
  if (path.startsWith('..') || packageIdOf(path) !== file.package.id) {
    return [
      { rule: 'private-import', message: `${specifier} leaves the package: import the other package by its name` },
    ]
  }
  const isTestTarget = target !== undefined && workspace.files.get(target)?.isTest === true
  if (!file.isTest && isTestTarget) {
    return [{ rule: 'test-import', message: `${specifier} is test code, which the product must not need` }]
  }
  return []
}

function checkBuiltin(file: SourceFile, specifier: string): Problem[] {
  if (file.isTest || PACKAGE_RULES[file.package.id]?.runtime !== 'anywhere') return []
  return [
    { rule: 'node-import', message: `${specifier} exists only in Node; ${file.package.id} also runs in browsers` },
  ]
}

function checkNpm(file: SourceFile, name: string, workspace: Workspace): Problem[] {
  const { dependencies, devDependencies, id } = file.package
  const isDeclared =
    dependencies.has(name) ||
    (file.isTest && (devDependencies.has(name) || workspace.packages.get('')?.devDependencies.has(name) === true))
  if (!isDeclared) {
    return [
      { rule: 'undeclared-import', message: `${name} is not declared in the package.json of ${id || 'the root'}` },
    ]
  }
  const allowed = PACKAGE_RULES[id]?.npm
  if (!file.isTest && allowed && !allowed.includes(name)) {
    return [{ rule: 'package-arrow', message: `${id} may import only ${allowed.join(', ')} from npm, not ${name}` }]
  }
  return []
}

function checkArrow(file: SourceFile, to: string, name: string): Problem[] {
  const { id: from, dependencies, devDependencies } = file.package
  if (from === '') return []
  if (!PACKAGE_RULES[from]?.packages.includes(to)) {
    return [{ rule: 'package-arrow', message: `${from} may not import ${to}` }]
  }
  if (dependencies.has(name) || (file.isTest && devDependencies.has(name))) return []
  return [{ rule: 'undeclared-import', message: `${name} is not declared in the package.json of ${from}` }]
}
