import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { createClient } from '@carillon/api'
import { createDatabase } from '@carillon/core/testing'
import { readSettings, startEverything } from '@carillon/server'
import { afterAll, expect, test } from 'vitest'

import { REPOSITORY, runTool } from '../house/run-tool.ts'

// What the guides show is sent to a service, in the order of the page.
const ADMIN_KEY = 'the-key-of-this-installation'
const database = await createDatabase()
const service = await startEverything(
  readSettings({
    DATABASE_URL: database.url,
    CARILLON_PORT: '0',
    CARILLON_ADMIN_KEY: ADMIN_KEY,
    CARILLON_ALLOWED_TARGETS: '127.0.0.1,digest.internal',
    CARILLON_SECRETS_KEY: Buffer.alloc(32, 7).toString('base64'),
    CARILLON_LOG_LEVEL: 'silent',
  }),
)
const client = createClient(service.url, ADMIN_KEY)
afterAll(async () => {
  await service.stop()
  await database[Symbol.asyncDispose]()
})

function guide(name: string): string {
  return readFileSync(join(REPOSITORY, 'docs/guides', name), 'utf8')
}

function blocks(page: string, language: string): string[] {
  return [...page.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'gms'))].map(([, text = '']) => text)
}

test('the requests of the guide to the API are answered as it says', async () => {
  const requests = blocks(guide('http-api.md'), 'http')
  expect(requests.length).toBeGreaterThan(5)
  let id = ''
  for (const text of requests) {
    const parts = text.trim().split('\n\n')
    const [head = '', body] = parts.length === 3 ? parts : [parts[0]]
    const [line = '', ...headerLines] = head.split('\n')
    const [method = '', path = ''] = line.split(' ')
    const headers = new Headers(headerLines.map((header) => header.split(': ') as [string, string]))
    headers.set('authorization', `Bearer ${ADMIN_KEY}`)
    if (body !== undefined) headers.set('content-type', 'application/json')

    const response = await fetch(new URL(path.replace('{id}', id), service.url), {
      method,
      headers,
      ...(body === undefined ? {} : { body }),
    })

    expect({ text, status: String(response.status) }).toEqual({ text, status: parts.at(-1) })
    if (line === 'POST /api/v1/schedules' && response.ok) ({ id } = (await response.json()) as { id: string })
  }
})

test('every cadence that the guide to schedules shows can be previewed', async () => {
  const shown = [...guide('schedules.md').matchAll(/`(\{ "kind": .*?\})`/g)].map(([, text = '']) => text)
  expect(shown).toHaveLength(5)

  for (const text of shown) {
    const { description } = await client.cadence.preview({
      cadence: JSON.parse(text) as { kind: 'cron'; expression: '' },
    })
    expect(description).toMatch(/\w/)
  }
})

test('the target that the guide to HTTP targets shows is accepted', async () => {
  const [text = ''] = blocks(guide('http-targets.md'), 'json')
  const target = JSON.parse(text) as { kind: 'http'; url: string }

  const schedule = await client.schedules.create({
    name: 'Shown',
    cadence: { kind: 'cron', expression: '@daily' },
    target,
  })

  expect(schedule.target).toEqual(target)
})

test('the program with the typed client follows its schedule to the end, and the guide shows lines of it', async () => {
  process.env['CARILLON_URL'] = service.url
  process.env['CARILLON_API_KEY'] = ADMIN_KEY
  const { exitCode, stdout } = await runTool(REPOSITORY, process.execPath, [join(REPOSITORY, 'examples/client.ts')])

  expect(exitCode).toBe(0)
  // What it says of a run that began is how that run is when it is asked, a moment later.
  expect(stdout).toMatch(/^running: (?:Is under way|Ran)\.\nsucceeded: Ran\.\n$/m)
  const program = readFileSync(join(REPOSITORY, 'examples/client.ts'), 'utf8').split('\n')
  const shown = blocks(guide('http-api.md'), 'ts').join('').split('\n').filter(Boolean)
  expect(shown.filter((line) => !program.includes(line))).toEqual([])
})
