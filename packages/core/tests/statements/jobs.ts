import { expect } from 'vitest'

import { claimTurn, readReached, releaseTurn, storeTurn } from '../../src/jobs/store/turns.ts'
import { answering, type Samples } from './describe.ts'
import { AT, ID, NOW } from './sample-values.ts'

const TURN = { name: 'audit', workerId: ID, forMs: 1, ...NOW }
const FENCE = { workerId: ID, until: 'infinity', requestedAt: null }
const SLICE = { name: 'audit', fence: FENCE, cursor: {}, reachedAt: AT, restMs: 1, holdMs: 1, isAnswered: true, ...NOW }

export const samples: Samples = [
  (db) => claimTurn(db, TURN),
  // Before the first claim of a service there is no row, so it sends one more statement.
  (db) => expect(claimTurn(answering(db, []), TURN)).rejects.toThrow('expected a row'),
  (db) => storeTurn(db, SLICE),
  (db) => releaseTurn(db, TURN),
  (db) => readReached(db, TURN),
]
