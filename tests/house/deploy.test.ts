import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'

import { REPOSITORY, runTool } from './run-tool.ts'

// What lies in deploy/ cannot be run here: no images, no cluster. What it says of Carillon can be held against Carillon.
const files = globSync('deploy/**/*', { cwd: REPOSITORY, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => join(entry.parentPath, entry.name))

const manifests = files.filter((file) => file.endsWith('.yaml'))

function textOf(file: string): string {
  return readFileSync(file, 'utf8')
}

/** The command lines of `carillon` in all of them: what follows its name, or is given to the image. */
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

test.each(manifests)('%s is YAML, each document with a kind where it is one of Kubernetes', (file) => {
  const documents = parseAllDocuments(textOf(file), { merge: true })

  expect(documents.flatMap(({ errors }) => errors)).toEqual([])
  const kinds = documents.map((document) => (document.toJS() as { kind?: unknown }).kind)
  if (file.includes('kubernetes')) expect(kinds).toEqual(kinds.map(() => expect.stringMatching(/^[A-Z]/) as string))
})

test('every command they run is one of the command line, with options that it knows', async () => {
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

test('every variable they and the guide name is a setting', () => {
  const settings = textOf(join(REPOSITORY, 'packages/server/src/start/settings.ts'))
  const pages = [...files, join(REPOSITORY, 'docs/guides/production.md')]
  const named = new Set(
    pages.flatMap((file) => [...textOf(file).matchAll(/\bCARILLON_[A-Z_]+\b/g)].map(([name]) => name)),
  )
  named.delete('CARILLON_API_KEY')

  expect([...named].filter((name) => !settings.includes(`'${name}'`))).toEqual([])
  expect(named.size).toBeGreaterThan(5)
})

test('no pod is given the links of services: those of one called carillon would be taken for settings', () => {
  for (const file of ['migrate', 'server', 'worker']) {
    expect(textOf(join(REPOSITORY, 'deploy/kubernetes', `${file}.yaml`))).toMatch(/^ {6}enableServiceLinks: false$/m)
  }
})

test('the image copies what is there, and starts what is there', () => {
  const dockerfile = textOf(join(REPOSITORY, 'deploy/Dockerfile'))
  const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, paths = '']) => paths.split(' '))
  const [, entry = ''] = /^ENTRYPOINT \["node", "(.+)"\]$/m.exec(dockerfile) ?? []

  expect([...copied, entry].filter((path) => !existsSync(join(REPOSITORY, path)))).toEqual([])
})
