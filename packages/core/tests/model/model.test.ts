import { expect, test } from 'vitest'

import { createDatabase } from '../database.ts'
import { findFaults, installFaultTriggers } from './fault-triggers.ts'
import { MODULE_CHECKS } from './model-hooks.ts'
import { Model } from './model.ts'

/** `npm run test:model` makes more runs with more steps. MODEL_SEED repeats one run. */
const RUNS = Number(process.env['MODEL_RUNS'] ?? 2)
const STEPS = Number(process.env['MODEL_STEPS'] ?? 250)
const FIRST_SEED = Number(process.env['MODEL_SEED'] ?? Math.floor(Math.random() * 1_000_000))
const SEEDS = Array.from({ length: RUNS }, (_, run) => FIRST_SEED + run)

test.each(SEEDS)(
  'under random concurrent work over breaking connections each slot has one line, the overlap policy holds, no run is stranded, ' +
    'each run ends once, completions decide, each end reaches the hooks once, and the counts are right (seed %i)',
  async (seed) => {
    await using database = await createDatabase()
    await installFaultTriggers(database.pool)
    const model = await Model.start(database, seed)

    await model.run(STEPS)
    await model.finish()
    await model.stop()

    const { steps, cuts } = model.counts
    const counts = { steps, cuts, completions: model.completions.counts }
    process.stdout.write(`model seed ${seed}: ${JSON.stringify(counts)}\n`)
    expect(await findFaults(database.pool, model.hasHooks ? MODULE_CHECKS : {})).toEqual([])
    expect(await model.completions.findUndecided(database.pool)).toEqual([])
    expect([...model.target.calls].filter(([, times]) => times > 1)).toEqual([])
  },
)
