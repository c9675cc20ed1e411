import { expect, test } from 'vitest'

import type { AuditCounts } from '../../src/audit/auditor.ts'
import { emptiedPipelines } from '../emptied-pipeline.ts'
import { HEARTBEAT_MS, MINUTE, type Pipeline } from '../pipeline.ts'
import { FAIL, held, SUCCEEDED } from '../scripted-target.ts'
import { TestAuditor } from '../test-auditor.ts'

const pipelineAt = emptiedPipelines()

function audit({ workerDb: db, clock, events }: Pipeline): Promise<AuditCounts> {
  return new TestAuditor({ db, clock, events }).audit()
}

test('after the run of a dead worker was rescued and has ended, neither the first nor the second audit finds anything', async () => {
  const pipeline = await pipelineAt('2026-03-02T09:00:00Z')
  const { clock, target } = pipeline
  const schedule = await pipeline.create({ cadence: { kind: 'once', at: '2026-03-02T09:01:00Z' } })
  const [dead, other] = [pipeline.worker('dead'), pipeline.worker('other')]
  target.script = () => FAIL
  clock.advance(MINUTE)
  await other.runDue()
  target.script = held().script
  await pipeline.pass(MINUTE, other)
  await dead.startDue()
  dead.process.stop()
  await target.whenCalled(2)

  await pipeline.pass(3 * HEARTBEAT_MS, other)
  expect(await other.rescuer.runOnce()).toMatchObject({ rescued: 1 })
  target.script = () => SUCCEEDED
  await other.runDue()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded'])
  const audits = [await audit(pipeline), await audit(pipeline)]
  const found = audits.map(({ findings }) => Object.entries(findings).filter(([, count]) => count > 0))
  expect(found).toEqual([[], []])
})
