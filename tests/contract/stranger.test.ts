import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

import { createConfig, lintFromString } from '@redocly/openapi-core'
import { generate } from 'openapi-typescript-codegen'
import { rolldown } from 'rolldown'
import { expect, test } from 'vitest'

import { SCHEDULE } from './wire-request.ts'
import { openWorld } from './world.ts'

/** The parts of the generated client that this test uses. */
interface GeneratedClient {
  readonly OpenAPI: { BASE: string; TOKEN: string }
  readonly SchedulesService: {
    createSchedule(body: unknown, idempotencyKey?: string): Promise<{ readonly id: string; readonly state: string }>
    listSchedules(state?: string): Promise<{ readonly items: readonly { readonly id: string }[] }>
    pauseSchedule(id: string, body: unknown): Promise<{ readonly state: string; readonly pausedReason: string }>
  }
}

async function fetchDocument(url: string): Promise<string> {
  const response = await fetch(new URL('/openapi.json', url))
  return response.text()
}

test('a strict third-party validator accepts the document that the server shows', async () => {
  const world = await openWorld()
  const source = await fetchDocument(world.url)
  await world.close()

  const config = await createConfig({ extends: ['recommended-strict'] })
  const problems = await lintFromString({ source, absoluteRef: '/openapi.json', config })

  expect(problems.map(({ ruleId, message, location }) => ({ ruleId, message, at: location[0]?.pointer }))).toEqual([])
})

test('a client that a public generator creates from the document can create, list and pause a schedule', async () => {
  const world = await openWorld()
  const folder = await mkdtemp(join(tmpdir(), 'carillon-generated-'))
  const input = join(folder, 'openapi.json')
  await writeFile(input, await fetchDocument(world.url))
  await generate({ input, output: join(folder, 'client'), httpClient: 'fetch' })
  const bundle = await rolldown({ input: join(folder, 'client/index.ts') })
  const file = join(folder, 'client.mjs')
  await bundle.write({ file, format: 'esm' })
  await bundle.close()
  const client = (await import(pathToFileURL(file).href)) as GeneratedClient

  client.OpenAPI.BASE = world.url
  client.OpenAPI.TOKEN = world.adminKey
  const { id, state } = await client.SchedulesService.createSchedule(SCHEDULE, 'from-a-generated-client')
  const { items } = await client.SchedulesService.listSchedules('active')
  const paused = await client.SchedulesService.pauseSchedule(id, { reason: 'the generated client says so' })
  const refused: unknown = await client.SchedulesService.createSchedule({ name: '' }).catch((error: unknown) => error)

  expect(state).toBe('active')
  expect(items.map((item) => item.id)).toEqual([id])
  expect(paused).toMatchObject({ id, state: 'paused', pausedReason: 'the generated client says so' })
  expect(refused).toMatchObject({ status: 400, body: { code: 'invalid_input' } })
  await world.close()
  await rm(folder, { recursive: true })
})
