import { countActiveKinds, listWaitingKinds } from '../../src/doctor/store/target-kinds.ts'
import type { Samples } from './describe.ts'
import { NOW } from './sample-values.ts'

export const samples: Samples = [(db) => countActiveKinds(db), (db) => listWaitingKinds(db, NOW)]
