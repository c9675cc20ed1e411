import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'

import { REPOSITORY } from './run-tool.ts'

interface Compose {
  readonly services: Readonly<Record<string, { readonly environment: Readonly<Record<string, string>> }>>
}

/** A Deployment or a Job; what else a file holds has no template. */
interface Workload {
  readonly spec: {
    readonly template?: {
      readonly spec: {
        readonly containers: readonly {
          readonly envFrom: readonly { readonly secretRef?: { readonly name: string } }[]
        }[]
      }
    }
  }
}

function textOf(file: string): string {
  return readFileSync(join(REPOSITORY, 'deploy', file), 'utf8')
}

/** The secrets of Kubernetes that the pods of a file are given. */
function secretsOf(file: string): string[] {
  const documents = parseAllDocuments(textOf(`kubernetes/${file}.yaml`)).map((document) => document.toJS() as Workload)
  const containers = documents.flatMap(({ spec }) => spec.template?.spec.containers ?? [])
  return containers.flatMap(({ envFrom }) => envFrom.flatMap(({ secretRef }) => secretRef?.name ?? []))
}

function environmentFilesOf(unit: string): string[] {
  return [...textOf(`systemd/${unit}`).matchAll(/^EnvironmentFile=(\S+)$/gm)].map(([, file = '']) => file)
}

test('compose gives the key of the installation to the server alone, and everything else to all', () => {
  const { server, worker, migrate } = (parse(textOf('compose.yaml'), { merge: true }) as Compose).services

  const { CARILLON_ADMIN_KEY: adminKey, ...shared } = server?.environment ?? {}
  expect(adminKey).toMatch(/^\$\{CARILLON_ADMIN_KEY:\?/)
  expect(Object.keys(shared)).toContain('CARILLON_SECRETS_KEY')
  expect([worker?.environment, migrate?.environment]).toEqual([shared, shared])
})

test('Kubernetes gives the secret with the key of the installation to servers alone', () => {
  const commands = textOf('kubernetes/namespace.yaml').replaceAll(/\\\n# +/g, '')
  const [, holder] = /create secret generic (\S+) [^\n]*CARILLON_ADMIN_KEY/.exec(commands) ?? []

  expect(holder).toBe('carillon-server')
  expect(secretsOf('server')).toEqual(['carillon', holder])
  expect([...secretsOf('worker'), ...secretsOf('migrate')]).toEqual(['carillon', 'carillon'])
})

test('systemd reads the key of the installation from a file of the server alone', () => {
  const [server, worker] = ['carillon-server.service', 'carillon-worker@.service']

  expect(environmentFilesOf(server ?? '')).toEqual(['/etc/carillon/environment', '/etc/carillon/server'])
  expect(environmentFilesOf(worker ?? '')).not.toContain('/etc/carillon/server')
  expect(textOf(`systemd/${server}`)).toMatch(/CARILLON_ADMIN_KEY.*\nEnvironmentFile=\/etc\/carillon\/server\n/)
  expect(textOf(`systemd/${worker}`)).not.toContain('CARILLON_ADMIN_KEY')
})
