import { expect, test } from 'vitest'

import { createDatabase } from '../database.ts'
import { Model } from './model.ts'
import { findFaults, install } from './witness.ts'

/** `npm run test:model` does more of them; MODEL_SEED repeats one. */
const RUNS = Number(process.env['MODEL_RUNS'] ?? 2)
const STEPS = Number(process.env['MODEL_STEPS'] ?? 250)
const FIRST_SEED = Number(process.env['MODEL_SEED'] ?? Math.floor(Math.random() * 1_000_000))
const SEEDS = Array.from({ length: RUNS }, (_, run) => FIRST_SEED + run)

test.each(SEEDS)(
  'whatever several workers and an API do at the same time over connections that break, each slot has one line, no two runs ' +
    'are held where the policy forbids it, nothing is stranded, each run ends once, and the counts are right (seed %i)',
  async (seed) => {
    await using database = await createDatabase()
    await install(database.pool)
    const model = await Model.start(database, seed)

    await model.run(STEPS)
    await model.calm()
    await model.stop()

    const { steps, cuts } = model.counts
    process.stdout.write(`model seed ${seed}: steps ${JSON.stringify(steps)}, cuts ${JSON.stringify(cuts)}\n`)
    expect(await findFaults(database.pool)).toEqual([])
    expect([...model.target.calls].filter(([, times]) => times > 1)).toEqual([])
  },
)
