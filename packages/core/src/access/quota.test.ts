import { expect, test } from 'vitest'

import { withQuota } from './quota.ts'

const QUOTA = { perProject: 1, perUser: null }

function refusal(detail: unknown): Error {
  return Object.assign(new Error('expected at most 1 schedules'), { severity: 'ERROR', code: 'CA001', detail })
}

test('a refusal by the database becomes quota_exceeded, with the limit and whose it is', async () => {
  const error = refusal('{"limit" : 1, "scope" : "project"}')

  await expect(withQuota(QUOTA, () => Promise.reject(error))).rejects.toMatchObject({
    code: 'quota_exceeded',
    message: 'expected at most 1 schedules in this project, got more: delete some, or have the limit raised',
    cause: error,
  })
})

test.each([undefined, '', 'not JSON', '{}', '{"limit": "1", "scope": "planet"}'])(
  'a refusal whose detail is %j is thrown as the database reported it',
  async (detail) => {
    const error = refusal(detail)

    await expect(withQuota(QUOTA, () => Promise.reject(error))).rejects.toBe(error)
  },
)
