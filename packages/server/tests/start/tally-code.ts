import type { Admission, ModuleDeps, ModuleParts, Target, Tx } from '@carillon/core'
import { z } from 'zod'

import type { TallySettings } from './tally-settings.ts'

export function create({ settings: { mostRuns }, transact }: ModuleDeps<TallySettings>): ModuleParts {
  const target: Target = {
    kind: 'tally',
    schema: z.object({ kind: z.literal('tally') }),
    policy: { retry: { maxAttempts: 1, baseSeconds: 1, capSeconds: 1 } },
    requiredScope: () => 'tally:count:*',
    timeoutMs: () => 10_000,
    admit: async (tx, candidates) => {
      const admissions: Admission[] = []
      for (const { tenantId, projectId } of candidates) {
        const isFull = (await readCount(tx, tenantId, projectId)) >= mostRuns
        admissions.push(isFull ? { kind: 'refused', reason: 'tally_full' } : { kind: 'admitted' })
      }
      return admissions
    },
    dispatch: () => Promise.resolve({ kind: 'succeeded', result: 'counted' }),
    settled: async (tx, ends) => {
      for (const { tenantId, projectId, ending } of ends) {
        if (ending === 'succeeded') await addOne(tx, tenantId, projectId)
      }
    },
  }
  return {
    targets: [target],
    handlers: {
      // Row-level security shows the count of the caller's project only.
      readTally: async ({ caller }) => {
        if (caller === null) throw new Error('expected a caller, got none')
        const rows = await transact(caller, (tx) => tx.run({ text: 'select count from tally_counts', parameters: [] }))
        return { body: (rows as { count: number }[])[0] ?? { count: 0 } }
      },
    },
    checks: [
      {
        name: 'counts',
        look: async (tx) => {
          const text = 'select tenant_id as "tenantId", project_id as "projectId" from tally_counts where count < 0'
          const scopes = (await tx.run({ text, parameters: [] })) as { tenantId: string; projectId: string }[]
          const fault = { kind: 'below_zero', detail: 'the count is below zero', remedy: 'count again' }
          return { findings: scopes.map((scope) => ({ ...fault, scope })), next: null }
        },
      },
    ],
  }
}

async function readCount(tx: Tx, tenantId: string, projectId: string): Promise<number> {
  const text = 'select count from tally_counts where tenant_id = $1 and project_id = $2'
  const [row] = (await tx.run({ text, parameters: [tenantId, projectId] })) as { count: number }[]
  return row?.count ?? 0
}

async function addOne(tx: Tx, tenantId: string, projectId: string): Promise<void> {
  const text = `
    insert into tally_counts as tally (tenant_id, project_id, count) values ($1, $2, 1)
    on conflict (tenant_id, project_id) do update set count = tally.count + 1`
  await tx.run({ text, parameters: [tenantId, projectId] })
}
