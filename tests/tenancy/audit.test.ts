import { createClient } from '@carillon/api'
import { createDatabase } from '@carillon/core/testing'
import { readSettings, startServer, startWorker } from '@carillon/server'
import { expect, test } from 'vitest'

import { SCHEDULE } from '../contract/wire-request.ts'

const ADMIN_KEY = 'the-key-of-this-installation'

test('an audit covers all tenants, and does not reveal to any of them how much the others have', async () => {
  await using database = await createDatabase()
  const settings = readSettings({
    DATABASE_URL: database.url,
    CARILLON_PORT: '0',
    CARILLON_ADMIN_KEY: ADMIN_KEY,
    CARILLON_ALLOWED_TARGETS: '127.0.0.1',
    CARILLON_LOG_LEVEL: 'silent',
  })
  const service = await startServer(settings)
  const worker = await startWorker(settings, { targetKinds: ['http'], metricsPort: null })
  try {
    const installation = createClient(service.url, ADMIN_KEY)
    const clientOf = async (tenant: string) => {
      const place = { tenant, project: 'kitchen' }
      const { key } = await installation.keys.create({ ...place, subject: 'user:mallory', role: 'admin' })
      return createClient(service.url, key)
    }
    const [amber, basil] = [await clientOf('amber'), await clientOf('basil')]
    /** No event reports the end of an audit, so this polls. */
    const audited = async () => {
      const { requestedAt } = await installation.audit.request()
      let { latest } = await installation.audit.get()
      while (latest?.isWhole !== true || latest.startedAt < requestedAt) ({ latest } = await installation.audit.get())
      return latest
    }
    const toldAmber = async () => {
      const { latest, findings } = await amber.audit.get()
      const numbers = Object.entries(latest ?? {}).filter(([, value]) => typeof value === 'number')
      return { isKnown: latest !== null, numbers, findings }
    }

    expect(await audited()).toMatchObject({ schedules: 0 })
    const before = await toldAmber()
    await basil.schedules.create(SCHEDULE)
    await basil.schedules.create(SCHEDULE)
    expect(await audited()).toMatchObject({ schedules: 2 })

    expect(before).toEqual({ isKnown: true, numbers: [], findings: [] })
    expect(await toldAmber()).toEqual(before)
  } finally {
    await worker.stop()
    await service.stop()
  }
})
