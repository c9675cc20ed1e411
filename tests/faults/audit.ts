import { setTimeout as sleep } from 'node:timers/promises'

import type { Audit, createPool, Scheduler } from '@carillon/core'

type Pool = ReturnType<typeof createPool>

/** The findings of the requested audit, counted by kind. */
export interface AuditResult {
  readonly isFinished: boolean
  readonly findings: number
  readonly kinds: Readonly<Record<string, number>>
  /** The findings of earlier audits, during the faults. */
  readonly earlierKinds: Readonly<Record<string, number>>
  /** How many slots any audit has found lost. An audit writes a line for them, so the ledger does not show them afterwards. */
  readonly slotsLost: number
  /** Some of the findings, in words. */
  readonly details: readonly string[]
}

/** An audit that a fault interrupts starts again seconds later. */
const LIMIT_MS = 120_000
const LOOK_EVERY_MS = 500
const DETAILS_MAX = 5

/** Requests an audit and waits for it. Only this file knows how an audit is requested and read. */
export async function runAudit(pool: Pool, scheduler: Scheduler): Promise<AuditResult> {
  const askedAt = await scheduler.requestAudit()
  const limit = AbortSignal.timeout(LIMIT_MS)
  let audit = await finishedAudit(scheduler, askedAt)
  while (audit === undefined && !limit.aborted) {
    await sleep(LOOK_EVERY_MS)
    audit = await finishedAudit(scheduler, askedAt)
  }
  const { rows } = await pool.query<{ kind: string; detail: string; isLatest: boolean }>(
    `select kind::text as kind, detail, audit_id is not distinct from $1::uuid as "isLatest" from carillon.audit_findings`,
    [audit?.id ?? null],
  )
  const latest = rows.filter(({ isLatest }) => isLatest)
  return {
    isFinished: audit !== undefined,
    findings: audit?.findings ?? 0,
    kinds: countKinds(latest),
    earlierKinds: countKinds(rows.filter(({ isLatest }) => !isLatest)),
    slotsLost: rows.filter(({ kind }) => kind === 'slot_lost').length,
    details: latest.slice(0, DETAILS_MAX).map(({ kind, detail }) => `${kind}: ${detail}`),
  }
}

/** The report also contains what earlier audits found, because the audit runs all the time. */
async function finishedAudit(scheduler: Scheduler, askedAt: number): Promise<Audit | undefined> {
  const audit = await scheduler.latestAudit()
  return audit?.isWhole === true && audit.startedAt >= askedAt ? audit : undefined
}

function countKinds(findings: readonly { readonly kind: string }[]): Record<string, number> {
  return Object.fromEntries([...Map.groupBy(findings, ({ kind }) => kind)].map(([kind, all]) => [kind, all.length]))
}
