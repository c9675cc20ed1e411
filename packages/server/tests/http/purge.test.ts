import { afterAll, beforeAll, expect, test } from 'vitest'

import { DIGEST } from './example-schedules.ts'
import { createTestApp } from './test-app.ts'

const world = await createTestApp()
const { admin } = world
afterAll(() => world[Symbol.asyncDispose]())

let keys: { readonly web: string; readonly garden: string }

beforeAll(async () => {
  const made = async (project: string) =>
    (await admin.keys.create({ tenant: 'acme', project, subject: 'user:a', role: 'admin' })).key
  keys = { web: await made('web'), garden: await made('garden') }
})

test('a project is counted, emptied and purged if the caller repeats its name, and another project keeps its data', async () => {
  const [web, garden] = [world.client(keys.web), world.client(keys.garden)]
  const { id } = await web.schedules.create(DIGEST)
  await garden.schedules.create(DIGEST)
  const run = await web.schedules.run(id)
  await web.secrets.put('token', { value: 'kept' })

  const preview = await web.projects.previewPurge('web')
  await expect(web.projects.purge('web', { name: 'web' })).rejects.toMatchObject({ code: 'state_conflict' })
  expect(await web.projects.deleteSchedules('web')).toEqual({ deleted: 1 })
  await expect(web.projects.purge('web', { name: 'Web' })).rejects.toMatchObject({
    status: 422,
    code: 'purge_refused',
    errors: [{ field: 'name' }],
  })
  const purged = await web.projects.purge('web', { name: 'web' })

  expect(preview).toMatchObject({ schedules: 1, runs: 1, grants: 1, secrets: 1 })
  expect(purged).toMatchObject({ schedules: 1, runs: 1, grants: 1, secrets: 1 })
  await expect(web.runs.get(run.id)).rejects.toMatchObject({ status: 404 })
  expect((await web.projects.previewPurge('web')).schedules).toBe(0)
  expect((await garden.schedules.list()).items).toHaveLength(1)
  expect(world.log.find(({ event }) => event === 'project.purged')).toMatchObject({
    tenantId: 'acme',
    projectId: 'web',
    actor: 'user:a',
    schedules: 1,
  })
})

test('I9: a caller counts and purges only its own project, and so does the installation', async () => {
  for (const client of [world.client(keys.web), admin]) {
    const missing = { status: 404, code: 'project_not_found' }
    await expect(client.projects.previewPurge('garden')).rejects.toMatchObject(missing)
    await expect(client.projects.purge('garden', { name: 'garden' })).rejects.toMatchObject(missing)
  }
})
