import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'

import { REPOSITORY } from './run-tool.ts'

interface Compose {
  readonly services: Readonly<Record<string, { readonly environment: Readonly<Record<string, string>> }>>
}

/** A Deployment or a Job. Other documents in a file have no template. */
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

/** The Kubernetes secrets that a file passes to its pods. */
function secretsOf(file: string): string[] {
  const documents = parseAllDocuments(textOf(`kubernetes/${file}.yaml`)).map((document) => document.toJS() as Workload)
  const containers = documents.flatMap(({ spec }) => spec.template?.spec.containers ?? [])
  return containers.flatMap(({ envFrom }) => envFrom.flatMap(({ secretRef }) => secretRef?.name ?? []))
}

function environmentFilesOf(unit: string): string[] {
  return [...textOf(`systemd/${unit}`).matchAll(/^EnvironmentFile=(\S+)$/gm)].map(([, file = '']) => file)
}

test('compose passes the admin key to the server only, and every other variable to all containers', () => {
  const { server, worker, migrate } = (parse(textOf('compose.yaml'), { merge: true }) as Compose).services

  const { CARILLON_ADMIN_KEY: adminKey, ...shared } = server?.environment ?? {}
  expect(adminKey).toMatch(/^\$\{CARILLON_ADMIN_KEY:\?/)
  expect(Object.keys(shared)).toContain('CARILLON_SECRETS_KEY')
  expect([worker?.environment, migrate?.environment]).toEqual([shared, shared])
})

test('Kubernetes passes the secret with the admin key to servers only', () => {
  const commands = textOf('kubernetes/namespace.yaml').replaceAll(/\\\n# +/g, '')
  const [, holder] = /create secret generic (\S+) [^\n]*CARILLON_ADMIN_KEY/.exec(commands) ?? []

  expect(holder).toBe('carillon-server')
  expect(secretsOf('server')).toEqual(['carillon', holder])
  expect([...secretsOf('worker'), ...secretsOf('migrate')]).toEqual(['carillon', 'carillon'])
})

test("systemd reads the admin key from a file that only the server's unit names", () => {
  const [server, worker] = ['carillon-server.service', 'carillon-worker@.service']

  expect(environmentFilesOf(server ?? '')).toEqual(['/etc/carillon/environment', '/etc/carillon/server'])
  expect(environmentFilesOf(worker ?? '')).not.toContain('/etc/carillon/server')
  expect(textOf(`systemd/${server}`)).toMatch(/CARILLON_ADMIN_KEY.*\nEnvironmentFile=\/etc\/carillon\/server\n/)
  expect(textOf(`systemd/${worker}`)).not.toContain('CARILLON_ADMIN_KEY')
})
