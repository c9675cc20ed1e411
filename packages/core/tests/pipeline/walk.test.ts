import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { MINUTE, Pipeline } from '../pipeline.ts'
import { SUCCEEDED } from '../scripted-target.ts'
import { traceFiles } from '../trace.ts'

/** The steps of a run in their order, as docs/architecture.md draws them. */
const STEPS = [
  'loop.ts',
  'due-watch.ts',
  'store/look.ts',
  'begin.ts',
  'store/claim.ts',
  'begin-plan.ts',
  'store/begin.ts',
  'dispatcher.ts',
  'attempt.ts',
  'permissions.ts',
  'settle.ts',
  'settle-queue.ts',
  'store/settle-successes.ts',
]

/** The shapes that a slot takes on its way, in their order. */
const SHAPES = [
  'DueLane',
  'ClaimedSchedule',
  'BeginPlan',
  'NewLine',
  'HeldRun',
  'TargetContext',
  'Ending',
  'Settlement',
  'SettledRun',
]

const SOURCE = join(import.meta.dirname, '../../src')
const ARCHITECTURE = readFileSync(join(import.meta.dirname, '../../../../docs/architecture.md'), 'utf8')

test('a run that succeeds passes 13 files of the pipeline, which are the steps that the architecture page draws', async () => {
  await using pipeline = await Pipeline.at('2026-03-02T09:00:30Z')
  const worker = pipeline.worker()
  pipeline.target.script = () => SUCCEEDED
  const schedule = await pipeline.create()
  pipeline.clock.advance(MINUTE / 2)
  await worker.heartbeat.runOnce()

  const files = await traceFiles(async () => {
    await worker.loop.runOnce()
    await worker.loop.whenIdle()
  })

  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded'])
  const inPipeline = files.filter((file) => file.startsWith('packages/core/src/pipeline/'))
  const below = files.filter((file) => file.startsWith('packages/core/src/') && !inPipeline.includes(file))
  process.stdout.write(`The walk of a run:\n${STEPS.map((step) => `  ${step}\n`).join('')}`)
  process.stdout.write(`Called on the way, in the rooms below:\n${below.map((file) => `  ${file}\n`).join('')}`)
  const steps = inPipeline.map((file) => file.replace('packages/core/src/pipeline/', ''))
  expect(steps).toEqual(STEPS.toSorted())
  for (const step of STEPS) expect(ARCHITECTURE).toContain(`\`pipeline/${step}\``)
})

test('a slot takes nine shapes on its way, and the architecture page names each', () => {
  const files = [
    'pipeline/*.ts',
    'pipeline/store/*.ts',
    'ledger/held-run.ts',
    'ledger/store/lines.ts',
    'ports/target.ts',
  ]
  const sources = globSync(files, { cwd: SOURCE, exclude: ['**/*.test.ts'] }).map((file) =>
    readFileSync(join(SOURCE, file), 'utf8'),
  )

  const declared = sources.flatMap((source) => shapesIn(source))

  expect(declared.toSorted()).toEqual(SHAPES.toSorted())
  for (const shape of SHAPES) expect(ARCHITECTURE).toContain(`\`${shape}\``)
})

/**
 * The exported types that carry one slot: they have its instant, or are the ending of its attempt. A `LanePosition` is a cursor into
 * an index, and what is derived by `Pick`, `Omit` or `extends` is no shape of its own.
 */
function shapesIn(source: string): string[] {
  const declarations = source.matchAll(/^export interface (\w+)(?:<[^>]*>)? \{\n([^]*?)^\}/gm)
  const interfaces = [...declarations]
    .filter(
      ([, name, body]) =>
        name !== 'LanePosition' && /^ {2}readonly (scheduledFor|nextSlotAt|dueAt)\b/m.test(body ?? ''),
    )
    .map(([, name = '']) => name)
  return [...interfaces, ...(/^export type (Ending) =/m.exec(source)?.slice(1) ?? [])]
}
