import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'

import { REPOSITORY, runTool } from './run-tool.ts'

// These tests have no images and no cluster, so they cannot run deploy/. They compare it with Carillon's commands and settings.
const files = globSync('deploy/**/*', { cwd: REPOSITORY, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => join(entry.parentPath, entry.name))

const manifests = files.filter((file) => file.endsWith('.yaml'))

function textOf(file: string): string {
  return readFileSync(file, 'utf8')
}

/** All command lines of `carillon`: the words after its name, or the arguments of the image. */
function commandLines(): string[][] {
  const fromUnits = files
    .filter((file) => file.endsWith('.service'))
    .map((file) => (/^ExecStart=\S+ \S+main\.ts (.+)$/m.exec(textOf(file))?.[1] ?? '').split(' '))
  const fromManifests = manifests.flatMap((file) => [...textOf(file).matchAll(/^\s+(?:args|command): \[(.+)\]$/gm)])
  return [
    ...fromUnits,
    ...fromManifests.map(([, list = '']) => list.split(', ').map((word) => word.replaceAll("'", ''))),
  ]
}

test.each(manifests)('%s is valid YAML, and each Kubernetes document has a kind', (file) => {
  const documents = parseAllDocuments(textOf(file), { merge: true })

  expect(documents.flatMap(({ errors }) => errors)).toEqual([])
  const kinds = documents.map((document) => (document.toJS() as { kind?: unknown }).kind)
  if (file.includes('kubernetes')) expect(kinds).toEqual(kinds.map(() => expect.stringMatching(/^[A-Z]/) as string))
})

test('every command in deploy/ exists, with its options', async () => {
  const lines = commandLines()
  expect(lines.length).toBeGreaterThan(5)

  for (const words of lines) {
    const command = words.filter((word) => /^[a-z]+$/.test(word) && words.indexOf(word) < 2)
    const path = command[0] === 'migrate' ? command : command.slice(0, 1)
    const carillon = join(REPOSITORY, 'packages/cli/bin/carillon.js')
    const { exitCode, stdout } = await runTool(REPOSITORY, process.execPath, [carillon, ...path, '--help'])

    expect({ words, exitCode }).toEqual({ words, exitCode: 0 })
    expect(stdout).toContain(`carillon ${path.join(' ')}`)
    for (const option of words.filter((word) => word.startsWith('--'))) expect(stdout).toContain(`${option} `)
  }
})

test('every variable in deploy/ and in the guide is a setting', () => {
  const settings = textOf(join(REPOSITORY, 'packages/server/src/start/settings.ts'))
  const pages = [...files, join(REPOSITORY, 'docs/guides/production.md')]
  const named = new Set(
    pages.flatMap((file) => [...textOf(file).matchAll(/\bCARILLON_[A-Z_]+\b/g)].map(([name]) => name)),
  )
  named.delete('CARILLON_API_KEY')

  expect([...named].filter((name) => !settings.includes(`'${name}'`))).toEqual([])
  expect(named.size).toBeGreaterThan(5)
})

test('no pod has service links, because those of a service named carillon would be read as settings', () => {
  for (const file of ['migrate', 'server', 'worker']) {
    expect(textOf(join(REPOSITORY, 'deploy/kubernetes', `${file}.yaml`))).toMatch(/^ {6}enableServiceLinks: false$/m)
  }
})

test('the image copies files that exist, and starts a file that exists', () => {
  const dockerfile = textOf(join(REPOSITORY, 'deploy/Dockerfile'))
  const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, paths = '']) => paths.split(' '))
  const [, entry = ''] = /^ENTRYPOINT \["node", "(.+)"\]$/m.exec(dockerfile) ?? []

  expect([...copied, entry].filter((path) => !existsSync(join(REPOSITORY, path)))).toEqual([])
})
