import type { Works } from './run-works.ts'
import { auditWork } from './works/audit.ts'
import { createWork } from './works/create.ts'
import { drainWork } from './works/drain.ts'
import { herdWork } from './works/herd.ts'
import { httpWork } from './works/http.ts'
import { idleWork } from './works/idle.ts'
import { importWork } from './works/import.ts'
import { latenessWork } from './works/lateness.ts'
import { pagesWork } from './works/pages.ts'
import { scaleWork } from './works/scale.ts'
import { waitingWork } from './works/waiting.ts'
import { workersWork } from './works/workers.ts'

export const WORKS: Works = {
  drain: drainWork,
  lateness: latenessWork,
  waiting: waitingWork,
  herd: herdWork,
  create: createWork,
  import: importWork,
  http: httpWork,
  workers: workersWork,
  audit: auditWork,
  scale: scaleWork,
  idle: idleWork,
  pages: pagesWork,
}
