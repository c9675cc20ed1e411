import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { createClient } from '@carillon/api'
import { createDatabase } from '@carillon/core/testing'
import { readSettings, startEverything } from '@carillon/server'
import { afterAll, expect, test } from 'vitest'

import { REPOSITORY, runTool } from '../house/run-tool.ts'

// Sends the examples of the guides to a server, in the order of the page.
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

test('the requests in the guide to the API get the answers in the guide', async () => {
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

test('every cadence in the guide to schedules can be previewed', async () => {
  const shown = [...guide('schedules.md').matchAll(/`(\{ "kind": .*?\})`/g)].map(([, text = '']) => text)
  expect(shown).toHaveLength(5)

  for (const text of shown) {
    const { description } = await client.cadence.preview({
      cadence: JSON.parse(text) as { kind: 'cron'; expression: '' },
    })
    expect(description).toMatch(/\w/)
  }
})

test('the target in the guide to HTTP targets is accepted', async () => {
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
  // The program reads the run a moment after its event, so the run may have ended by then.
  expect(stdout).toMatch(/^running: The run (?:is under way|succeeded)\.\nsucceeded: The run succeeded\.\n$/m)
  const program = readFileSync(join(REPOSITORY, 'examples/client.ts'), 'utf8').split('\n')
  const shown = blocks(guide('http-api.md'), 'ts').join('').split('\n').filter(Boolean)
  expect(shown.filter((line) => !program.includes(line))).toEqual([])
})
