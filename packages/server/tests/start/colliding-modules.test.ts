import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { createDatabase } from '@carillon/core/testing'
import { expect, onTestFinished, test } from 'vitest'

import { startServer } from '../../src/start/server.ts'
import { readSettings } from '../../src/start/settings.ts'

/** A module with one operation at `/tickets`. */
const moduleNamed = (name: string): string => `export const module = {
  port: 1,
  name: '${name}',
  version: '1.0.0',
  operations: {
    ${name}List: {
      method: 'get', prefix: '', path: '/tickets', tag: '${name}', summary: 'List', role: 'member',
      success: { status: 204, description: 'Nothing.' }, problems: [],
    },
  },
  load: async () => ({ create: () => ({ handlers: { ${name}List: async () => ({ body: undefined }) } }) }),
}`

test('a server does not start with two modules that serve one path, and the message names both', async () => {
  await using database = await createDatabase()
  const folder = mkdtempSync(join(tmpdir(), 'carillon-colliding-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  for (const name of ['ticket', 'help']) writeFileSync(join(folder, `${name}.mjs`), moduleNamed(name))
  const settings = readSettings(
    {
      DATABASE_URL: database.url,
      CARILLON_PORT: '0',
      CARILLON_ADMIN_KEY: 'the-admin-key-of-this-test',
      CARILLON_LOG_LEVEL: 'silent',
      CARILLON_MODULES: './ticket.mjs,./help.mjs',
    },
    { folder },
  )

  await expect(startServer(settings)).rejects.toMatchObject({
    name: 'OperatorError',
    code: 'module_refused',
    message:
      'expected methods and paths to be distinct, got ticketList of the module ticket, which is GET /tickets, and helpList of the ' +
      'module help, which is GET /tickets: rename one',
  })
})
