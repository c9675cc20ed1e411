export { listWorkers } from './store/workers.ts'
export type { Failing, WorkerRecord } from './store/workers.ts'
